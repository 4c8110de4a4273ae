package main

import (
	"github.com/agentplatform/agentplatform/functions/routine"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/awslambda"
	"github.com/agentplatform/agentplatform/pkg/cloud/stepfunctions"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("stop-routine-run", routine.StopRoutineRun, cloud.DB, awslambda.Invoke, stepfunctions.Workflow)
}
