package main

import (
	"github.com/agentplatform/agentplatform/functions/agent"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() { launch.Lambda("list-agents", agent.ListAgents, cloud.DB, secretsmanager.Secrets) }
