package main

import (
	"github.com/agentplatform/agentplatform/functions/integration"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("list-deliveries", integration.ListDeliveries, cloud.DB, secretsmanager.Secrets)
}
