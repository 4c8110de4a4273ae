package main

import (
	"github.com/agentplatform/agentplatform/functions/schedule"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() { launch.Lambda("schedule-runs", schedule.ScheduleRuns, cloud.DB, secretsmanager.Secrets) }
