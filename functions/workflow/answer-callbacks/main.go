package main

import (
	"github.com/agentplatform/agentplatform/functions/workflow"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/stepfunctions"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("answer-callbacks", workflow.AnswerCallbacks, cloud.DB, stepfunctions.Workflow)
}
