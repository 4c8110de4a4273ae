package main

import (
	"github.com/agentplatform/agentplatform/functions/connection"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/ssm"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("start-connection", connection.StartConnection, cloud.DB, ssm.IntegrationSecrets)
}
