package main

import (
	"github.com/agentplatform/agentplatform/functions/schedule"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/scheduler"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() { launch.Lambda("update-schedule", schedule.UpdateSchedule, cloud.DB, scheduler.Schedules) }
