package main

import (
	"github.com/agentplatform/agentplatform/functions/turn"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/agentcore"
	"github.com/agentplatform/agentplatform/pkg/cloud/appsync"
	"github.com/agentplatform/agentplatform/pkg/cloud/awslambda"
	"github.com/agentplatform/agentplatform/pkg/cloud/bedrock"
	"github.com/agentplatform/agentplatform/pkg/cloud/codeinterpreter"
	"github.com/agentplatform/agentplatform/pkg/cloud/ssm"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("dispatch-turn", turn.DispatchTurn, cloud.DB, bedrock.Model, bedrock.Guardrail, appsync.Publish, awslambda.Invoke, agentcore.Runtimes, codeinterpreter.Sandbox, ssm.ToolSecrets)
}
