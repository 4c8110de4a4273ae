package main

import (
	"github.com/agentplatform/agentplatform/functions/routine"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/awslambda"
	"github.com/agentplatform/agentplatform/pkg/cloud/bedrock"
	"github.com/agentplatform/agentplatform/pkg/cloud/codeinterpreter"
	"github.com/agentplatform/agentplatform/pkg/cloud/ssm"
	"github.com/agentplatform/agentplatform/pkg/cloud/stepfunctions"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("call-tool", routine.CallTool, cloud.DB, bedrock.Guardrail, awslambda.Invoke, codeinterpreter.Sandbox, ssm.ToolSecrets, stepfunctions.Workflow)
}
