package main

import (
	"github.com/agentplatform/agentplatform/functions/evaluation"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/awslambda"
	"github.com/agentplatform/agentplatform/pkg/cloud/bedrock"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("evaluate-turn", evaluation.EvaluateTurn, cloud.DB, bedrock.Model, awslambda.Invoke)
}
