package main

import (
	"github.com/agentplatform/agentplatform/functions/schedule"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/stepfunctions"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("run-schedule-now", schedule.RunScheduleNow, cloud.DB, stepfunctions.Workflow)
}
