package main

import (
	"github.com/agentplatform/agentplatform/functions/compliance"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("compliance-exports", compliance.ComplianceExports, cloud.Reader, secretsmanager.Secrets)
}
