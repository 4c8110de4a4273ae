package main

import (
	"github.com/agentplatform/agentplatform/functions/evaluation"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/appsync"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("cancel-evaluation-run", evaluation.CancelEvaluationRun, cloud.DB, appsync.Publish)
}
