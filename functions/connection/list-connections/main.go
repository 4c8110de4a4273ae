package main

import (
	"github.com/agentplatform/agentplatform/functions/connection"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("list-connections", connection.ListConnections, cloud.DB, secretsmanager.Secrets)
}
