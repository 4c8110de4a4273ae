package main

import (
	"github.com/agentplatform/agentplatform/functions/evaluation"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("list-evaluation-runs", evaluation.ListEvaluationRuns, cloud.DB, secretsmanager.Secrets)
}
