package main

import (
	"github.com/agentplatform/agentplatform/functions/compliance"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/s3"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("compliance-export-link", compliance.ComplianceExportLink, cloud.Reader, s3.Objects)
}
