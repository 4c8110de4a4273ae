package main

import (
	"github.com/agentplatform/agentplatform/functions/compliance"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/s3"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("compliance-proof", compliance.ComplianceProof, cloud.Reader, s3.Objects)
}
