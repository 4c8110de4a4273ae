package main

import (
	"github.com/agentplatform/agentplatform/functions/integration"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/awslambda"
	"github.com/agentplatform/agentplatform/pkg/cloud/ssm"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("deliver-replies", integration.DeliverReplies, cloud.DB, awslambda.Invoke, ssm.IntegrationSecrets)
}
