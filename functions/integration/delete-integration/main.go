package main

import (
	"github.com/agentplatform/agentplatform/functions/integration"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/ssm"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("delete-integration", integration.DeleteIntegration, cloud.DB, ssm.IntegrationSecrets)
}
