// Package scheduler is Amazon EventBridge Scheduler behind package clock: each schedule starts one execution of a state machine.
package scheduler

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/clock/due"
	"github.com/agentplatform/agentplatform/pkg/page"
)

// Clock is a clock.Clock: the schedules of one group. Use a pointer to it.
//
//   - Occurrences are exact to the minute ("60 second precision"); there is no flexible time window.
//   - What has run its last stays (ActionAfterCompletion NONE). With DELETE an at() would vanish when it has run, and whoever compares the schedules
//     with the database could not tell it from one that was lost. It counts against the account's quota until it is deleted.
//   - An occurrence that cannot be delivered is tried again within Window, then goes to DeadLetters. After that it is lost: the service makes up for
//     nothing that it missed.
//   - The SDK makes a ClientToken for each call and keeps it over its own retries, so a retry whose first try arrived does nothing. A token made of what
//     is put would be wrong: the third of Put(a), Put(b), Put(a) would be taken for the first.
//   - The service refuses a start of more than five minutes ago. A start that is past goes as what is left of it: of a rate its next occurrence, of a
//     cron nothing. It promises nothing of an end that is past: one that is disabled goes without. Those that were put are in the description.
type Clock struct {
	// Client's role needs scheduler:CreateSchedule, UpdateSchedule, GetSchedule and DeleteSchedule on the group's schedules, scheduler:ListSchedules,
	// and iam:PassRole on Role for scheduler.amazonaws.com. Required.
	Client      *scheduler.Client
	Group       string           // the schedules' group, which exists. Required
	Target      string           // ARN of the state machine. Required
	Role        string           // ARN of the role the service takes: states:StartExecution on Target, sqs:SendMessage on DeadLetters. Required
	DeadLetters string           // ARN of a standard SQS queue in the same region; empty: none
	Window      time.Duration    // how long an occurrence is tried, 1 minute to 24 hours. Default 1 hour
	Now         func() time.Time // default time.Now
}

const (
	maxAttempts = 185 // the service's most, so that Window ends them
	pageSize    = 100 // likewise
	started     = "Starts "
	ended       = "Ends "
)

// Put creates the schedule, and updates it if it is there; whoever deletes it between the two does not win against it.
func (c *Clock) Put(ctx context.Context, s clock.Schedule) error {
	now := time.Now
	if c.Now != nil {
		now = c.Now
	}
	s, err := due.Check(s, now())
	if err != nil {
		return err
	}
	create := scheduler.CreateScheduleInput{Name: &s.Name, GroupName: &c.Group, ScheduleExpression: &s.Expression, ScheduleExpressionTimezone: &s.TimeZone,
		StartDate: instant(s.Start), EndDate: instant(s.End), State: types.ScheduleStateDisabled, ActionAfterCompletion: types.ActionAfterCompletionNone,
		FlexibleTimeWindow: &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff}, Target: c.target(s)}
	if s.Enabled {
		create.State = types.ScheduleStateEnabled
	}
	var past []string
	if !s.Start.IsZero() && s.Start.Before(now()) {
		if create.StartDate, err = left(s, now()); err != nil {
			return err
		}
		past = append(past, started+s.Start.Format(time.RFC3339))
	}
	if !s.Enabled && !s.End.IsZero() && !s.End.After(now()) {
		create.EndDate = nil
		past = append(past, ended+s.End.Format(time.RFC3339))
	}
	if len(past) > 0 {
		create.Description = aws.String(strings.Join(past, ", "))
	}
	update := scheduler.UpdateScheduleInput{Name: create.Name, GroupName: create.GroupName, ScheduleExpression: create.ScheduleExpression,
		ScheduleExpressionTimezone: create.ScheduleExpressionTimezone, StartDate: create.StartDate, EndDate: create.EndDate, State: create.State,
		ActionAfterCompletion: create.ActionAfterCompletion, FlexibleTimeWindow: create.FlexibleTimeWindow, Target: create.Target, Description: create.Description}
	err = again(ctx, func() (bool, error) {
		_, err := c.Client.CreateSchedule(ctx, &create)
		if !conflict(err) {
			return false, err
		}
		_, err = c.Client.UpdateSchedule(ctx, &update)
		return missing(err) || conflict(err), err // deleted meanwhile, or somebody else updates it
	})
	if missing(err) {
		return fmt.Errorf("schedule %s: there is no group %s: %w", s.Name, c.Group, err)
	}
	return reason(s.Name, err)
}

func (c *Clock) target(s clock.Schedule) *types.Target {
	age := int32(cmp.Or(c.Window, time.Hour) / time.Second)
	t := &types.Target{Arn: &c.Target, RoleArn: &c.Role, Input: aws.String(string(s.Input)),
		RetryPolicy: &types.RetryPolicy{MaximumEventAgeInSeconds: &age, MaximumRetryAttempts: aws.Int32(maxAttempts)}}
	if c.DeadLetters != "" {
		t.DeadLetterConfig = &types.DeadLetterConfig{Arn: &c.DeadLetters}
	}
	return t
}

// left is what is left of a start that is past: a rate goes on in its step, a cron has no step.
func left(s clock.Schedule, now time.Time) (*time.Time, error) {
	times, err := due.Times(s, now)
	if err != nil || times.Expression.Rate() == 0 {
		return nil, err
	}
	next, _ := times.Next(now)
	return instant(next), nil
}

// Delete implements clock.Clock.
func (c *Clock) Delete(ctx context.Context, name string) error {
	if !clock.ValidName(name) {
		return ctx.Err()
	}
	err := again(ctx, func() (bool, error) {
		_, err := c.Client.DeleteSchedule(ctx, &scheduler.DeleteScheduleInput{Name: &name, GroupName: &c.Group})
		return conflict(err), err
	})
	if missing(err) {
		return nil
	}
	return reason(name, err)
}

// Get implements clock.Clock.
func (c *Clock) Get(ctx context.Context, name string) (s clock.Schedule, err error) {
	if !clock.ValidName(name) {
		return s, fmt.Errorf("schedule %q: %w", name, clock.ErrNotFound)
	}
	out, err := c.Client.GetSchedule(ctx, &scheduler.GetScheduleInput{Name: &name, GroupName: &c.Group})
	if err != nil {
		return s, reason(name, err)
	}
	s = clock.Schedule{Name: name, Expression: aws.ToString(out.ScheduleExpression), TimeZone: aws.ToString(out.ScheduleExpressionTimezone),
		Start: aws.ToTime(out.StartDate).UTC(), End: aws.ToTime(out.EndDate).UTC(), Enabled: out.State == types.ScheduleStateEnabled}
	if out.Target != nil {
		s.Input = json.RawMessage(aws.ToString(out.Target.Input))
	}
	for past := range strings.SplitSeq(aws.ToString(out.Description), ", ") {
		for word, bound := range map[string]*time.Time{started: &s.Start, ended: &s.End} {
			if text, is := strings.CutPrefix(past, word); is {
				if *bound, err = time.Parse(time.RFC3339, text); err != nil {
					return s, fmt.Errorf("schedule %s: its description is not one that was put: %w", name, err)
				}
			}
		}
	}
	return s, nil
}

// List implements clock.Clock.
func (c *Clock) List(ctx context.Context, token *string) (p page.Page[clock.Entry], err error) {
	out, err := c.Client.ListSchedules(ctx, &scheduler.ListSchedulesInput{GroupName: &c.Group, MaxResults: aws.Int32(pageSize), NextToken: token})
	if err != nil {
		return p, reason("group "+c.Group, err)
	}
	for _, s := range out.Schedules {
		p.Items = append(p.Items, clock.Entry{Name: aws.ToString(s.Name), Enabled: s.State == types.ScheduleStateEnabled})
	}
	p.NextToken = out.NextToken
	return p, nil
}

func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// again tries what gave way to somebody else a few times.
func again(ctx context.Context, try func() (lost bool, err error)) error {
	pause := 20 * time.Millisecond
	for attempt := 1; ; attempt++ {
		lost, err := try()
		if !lost || attempt == 6 {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		pause *= 2
	}
}

func missing(err error) bool {
	var e *types.ResourceNotFoundException
	return errors.As(err, &e)
}

// conflict is that of a schedule that exists, or that somebody else changes at this moment.
func conflict(err error) bool {
	var e *types.ConflictException
	return errors.As(err, &e)
}

// reason is what a caller can branch on and an operator can act on.
func reason(name string, err error) error {
	var tooMany *types.ServiceQuotaExceededException
	var throttled *types.ThrottlingException
	var api interface{ ErrorCode() string }
	switch {
	case err == nil:
		return nil
	case missing(err):
		return fmt.Errorf("schedule %s: %w: %w", name, clock.ErrNotFound, err)
	case errors.As(err, &tooMany):
		return fmt.Errorf("schedule %s: %w (quota Number of schedules): %w", name, clock.ErrTooMany, err)
	case errors.As(err, &throttled):
		return fmt.Errorf("schedule %s: %w: %w", name, clock.ErrThrottled, err)
	case errors.As(err, &api) && api.ErrorCode() == "AccessDeniedException":
		return fmt.Errorf("schedule %s: access denied: the role needs the action on the group's schedules, and iam:PassRole on the target's role: %w", name, err)
	}
	return fmt.Errorf("schedule %s: %w", name, err)
}
