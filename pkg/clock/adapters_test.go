package clock_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awsscheduler "github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/cloud/scheduler"
	"github.com/agentplatform/agentplatform/pkg/local/awsapi"
	local "github.com/agentplatform/agentplatform/pkg/local/clock"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/test/moto"
)

func TestContractLocal(t *testing.T) {
	db := pgtest.New(t)
	open := func() *local.Clock {
		c, err := local.Open(t.Context(), local.Config{URL: db.SuperURL})
		require.NoError(t, err)
		t.Cleanup(c.Close)
		return c
	}
	testContract(t, adapter{open(), open()})
}

// TestContractLocalScheduler is the cloud's adapter over the platform's own EventBridge Scheduler, as functions in processes of their own use it.
func TestContractLocalScheduler(t *testing.T) {
	kept, err := local.Open(t.Context(), local.Config{URL: pgtest.New(t).SuperURL})
	require.NoError(t, err)
	t.Cleanup(kept.Close)
	target := "arn:aws:states:us-east-1:000000000000:stateMachine:agentplatform-local-auto-thread"
	server := httptest.NewServer(awsapi.New(awsapi.Config{AccessKey: "platform", Secret: "its secret", Lambda: http.NotFoundHandler(), Cognito: http.NotFoundHandler(),
		Clock: kept, ScheduleGroup: "local", ScheduleTarget: target}))
	t.Cleanup(server.Close)
	client := awsscheduler.New(awsscheduler.Options{Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("platform", "its secret", "")})
	open := func(group, target string) *scheduler.Clock {
		return &scheduler.Clock{Client: client, Group: group, Target: target, Role: "arn:aws:iam::000000000000:role/scheduler"}
	}
	testContract(t, adapter{open("local", target), open("local", target)})

	another := open("another", target)
	require.ErrorContains(t, another.Put(t.Context(), clock.Schedule{Name: "s", Expression: "rate(1 day)"}), "there is no group another")
	_, err = another.List(t.Context(), nil)
	require.ErrorIs(t, err, clock.ErrNotFound)
	require.ErrorContains(t, open("local", target+"-2").Put(t.Context(), clock.Schedule{Name: "s", Expression: "rate(1 day)"}), "ValidationException")
	_, err = client.GetScheduleGroup(t.Context(), &awsscheduler.GetScheduleGroupInput{Name: aws.String("local")})
	require.Error(t, err)
	kept.Close()
	_, err = open("local", target).Get(t.Context(), "s")
	require.Error(t, err)
	require.NotErrorIs(t, err, clock.ErrNotFound)
}

// TestContractScheduler runs over moto, which differs from the service in this: it checks no expression, name, zone or token; it refuses a start that
// is past only for a create, and only of a cron; its pages are in the order of creation, newest first; it forgets ActionAfterCompletion of an update;
// it answers an unknown group with an error of its own (create) or with nothing (list); and it never runs anything.
func TestContractScheduler(t *testing.T) {
	endpoint := moto.Start(t)
	client := awsscheduler.New(awsscheduler.Options{Region: "us-east-1", BaseEndpoint: &endpoint, Credentials: credentials.NewStaticCredentialsProvider("any", "any", "")})
	group := "stage-schedules"
	_, err := client.CreateScheduleGroup(t.Context(), &awsscheduler.CreateScheduleGroupInput{Name: &group})
	require.NoError(t, err)
	_, err = client.CreateScheduleGroup(t.Context(), &awsscheduler.CreateScheduleGroupInput{Name: aws.String("another")})
	require.NoError(t, err)
	open := func(group string) *scheduler.Clock {
		return &scheduler.Clock{Client: client, Group: group, Target: "arn:aws:states:us-east-1:123456789012:stateMachine:auto-thread", Role: "arn:aws:iam::123456789012:role/scheduler",
			DeadLetters: "arn:aws:sqs:us-east-1:123456789012:schedules-dead-letters", Window: 2 * time.Hour}
	}
	testContract(t, adapter{open(group), open(group)})

	p, err := open("another").List(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, p.Items, "a clock has the schedules of its group")
	out, err := client.GetSchedule(t.Context(), &awsscheduler.GetScheduleInput{GroupName: &group, Name: aws.String("many-1")})
	require.NoError(t, err)
	require.Equal(t, "OFF", string(out.FlexibleTimeWindow.Mode))
	require.Equal(t, "NONE", string(out.ActionAfterCompletion))
	require.Equal(t, "arn:aws:states:us-east-1:123456789012:stateMachine:auto-thread", *out.Target.Arn)
	require.Equal(t, "arn:aws:iam::123456789012:role/scheduler", *out.Target.RoleArn)
	require.Equal(t, "arn:aws:sqs:us-east-1:123456789012:schedules-dead-letters", *out.Target.DeadLetterConfig.Arn)
	require.EqualValues(t, 7200, *out.Target.RetryPolicy.MaximumEventAgeInSeconds)
	require.EqualValues(t, 185, *out.Target.RetryPolicy.MaximumRetryAttempts)
}
