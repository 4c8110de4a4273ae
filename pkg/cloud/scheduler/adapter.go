package scheduler

import (
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/scheduler"

	"github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/handler"
)

// Schedules is the adapter for the need clock.
func Schedules(a *cloud.Account, p *handler.Ports) {
	p.Clock = sync.OnceValue(func() clock.Clock {
		return &Clock{Client: scheduler.NewFromConfig(a.AWS()), Group: cloud.Required("SCHEDULE_GROUP", a.ScheduleGroup),
			Target: cloud.Required("SCHEDULE_TARGET_ARN", a.ScheduleTarget), Role: cloud.Required("SCHEDULE_ROLE_ARN", a.ScheduleRole), DeadLetters: a.ScheduleLetters}
	})
}
