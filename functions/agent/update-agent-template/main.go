package main

import (
	"github.com/agentplatform/agentplatform/functions/agent"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/awslambda"
	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("update-agent-template", agent.UpdateAgentTemplate, cloud.DB, awslambda.Invoke, secretsmanager.Secrets)
}
