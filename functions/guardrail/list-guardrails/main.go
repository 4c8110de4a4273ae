package main

import (
	"github.com/agentplatform/agentplatform/functions/guardrail"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("list-guardrails", guardrail.ListGuardrails, cloud.DB, secretsmanager.Secrets)
}
