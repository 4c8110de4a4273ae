package main

import (
	"github.com/agentplatform/agentplatform/functions/tool"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/awslambda"
	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
	"github.com/agentplatform/agentplatform/pkg/cloud/ssm"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("update-tool-server", tool.UpdateToolServer, cloud.DB, awslambda.Invoke, ssm.ToolSecrets, secretsmanager.Secrets)
}
