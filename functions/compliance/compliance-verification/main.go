package main

import (
	"github.com/agentplatform/agentplatform/functions/compliance"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/kms"
	"github.com/agentplatform/agentplatform/pkg/cloud/s3"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("compliance-verification", compliance.ComplianceVerification, cloud.Reader, kms.Sign, s3.Objects)
}
