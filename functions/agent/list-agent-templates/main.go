package main

import (
	"github.com/agentplatform/agentplatform/functions/agent"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("list-agent-templates", agent.ListAgentTemplates, cloud.DB, secretsmanager.Secrets)
}
