package main

import (
	"github.com/agentplatform/agentplatform/functions/tool"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("list-tool-servers", tool.ListToolServers, cloud.DB, secretsmanager.Secrets)
}
