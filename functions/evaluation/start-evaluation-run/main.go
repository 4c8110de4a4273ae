package main

import (
	"github.com/agentplatform/agentplatform/functions/evaluation"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/awslambda"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("start-evaluation-run", evaluation.StartEvaluationRun, cloud.DB, awslambda.Invoke)
}
