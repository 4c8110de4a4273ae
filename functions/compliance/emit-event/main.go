package main

import (
	"github.com/agentplatform/agentplatform/functions/compliance"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/awslambda"
	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("emit-event", compliance.EmitEvent, cloud.DB, awslambda.Invoke, secretsmanager.Secrets)
}
