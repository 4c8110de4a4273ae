package main

import (
	"github.com/agentplatform/agentplatform/functions/agent"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() { launch.Lambda("get-agent-template", agent.GetAgentTemplate, cloud.DB) }
