package main

import (
	"github.com/agentplatform/agentplatform/functions/connection"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/ssm"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("delete-connection", connection.DeleteConnection, cloud.DB, ssm.IntegrationSecrets, ssm.ConnectionSecrets)
}
