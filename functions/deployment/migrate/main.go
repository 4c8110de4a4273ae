package main

import (
	"github.com/agentplatform/agentplatform/functions/deployment"
	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("migrate", deployment.Migrate, secretsmanager.Owner)
}
