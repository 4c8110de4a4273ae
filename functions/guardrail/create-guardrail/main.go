package main

import (
	"github.com/agentplatform/agentplatform/functions/guardrail"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("create-guardrail", guardrail.CreateGuardrail, cloud.DB)
}
