package schedule_test

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	pkgschedule "github.com/agentplatform/agentplatform/pkg/schedule"
	"github.com/agentplatform/agentplatform/pkg/thread"
	pkgturn "github.com/agentplatform/agentplatform/pkg/turn"
)

func TestOpenAutoThread(t *testing.T) {
	w := newWorld(t)
	input, first := w.input(), arn()
	input["title"], input["metadata"] = "Daily", object{"team": "ops"}
	o, failed := w.open(first, input)
	require.Nil(t, failed)
	require.Equal(t, "AUTO-1", o.ThreadID)

	th := w.thread(o.ThreadID)
	require.Equal(t, thread.Auto, th.Channel)
	require.Equal(t, thread.Open, th.Status)
	require.Equal(t, "Daily", *th.Title)
	require.JSONEq(t, `{"team":"ops"}`, *th.Metadata)
	require.Equal(t, w.AgentID, th.AgentID)
	require.Equal(t, w.SpaceID, th.SpaceID)
	require.Equal(t, []string{"user: Sum up the day."}, w.messages(th))
	require.Equal(t, pkgturn.Queued, w.turn(o.TurnID).Status)
	require.Equal(t, record{Workflow: "auto-thread", Status: "running", TurnID: &o.TurnID, Started: true}, w.record(first))

	again, failed := w.open(first, input)
	require.Nil(t, failed)
	require.Equal(t, o, again, "the engine asked twice")
	require.Equal(t, "AUTO-2", w.opened(arn()).ThreadID)
	require.Equal(t, []int{2, 2, 2, 2}, []int{w.count("executions"), w.count("threads"), w.count("thread_turns"), w.count("messages")})
}

func TestOpenTogether(t *testing.T) {
	w := newWorld(t)
	w.change(`update agents set turns_per_minute = 1`) // the limit counts the execution once
	one := arn()
	answers, failed := together(8, func() (pkgschedule.Opened, *messages.InvokeResponse_Error) { return w.open(one, w.input()) })
	for i, a := range answers {
		require.Nil(t, failed[i])
		require.Equal(t, answers[0], a)
	}
	require.Equal(t, []int{1, 1, 1, 1}, []int{w.count("executions"), w.count("threads"), w.count("thread_turns"), w.count("messages")})
}

func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change        object
		arrange       string
		kind, message string
	}{
		"another tenant's agent": {object{}, "", "NotFound", "agent not found"},
		"no such agent":          {object{"agentId": ident.New()}, "", "NotFound", "agent not found"},
		"no agent":               {object{"agentId": nil}, "", "NotFound", "agent not found"},
		"suspended":              {nil, `update agents set status = 'suspended'`, "Forbidden", "the agent is suspended and takes no turns"},
		"archived":               {nil, `update agents set status = 'archived'`, "Forbidden", "the agent is archived and takes no turns"},
		"limited":                {nil, `update agents set status = 'active', turns_per_hour = 1`, "RateLimitExceeded", "the agent's limit of 1 turns per hour is reached"},
		"no budget":              {nil, `insert into budgets (tenant_id, scope, scope_id, monthly_micros) select tenant_id, 'agent', id, 300000 from agents`, "BudgetExceeded", "the agent's monthly budget of 0.30 USD does not cover another turn"},
		"no prompt":              {object{"prompt": " "}, "", "ValidationError", "prompt must not be empty"},
		"a long prompt":          {object{"prompt": strings.Repeat("x", 128<<10+1)}, "", "ValidationError", "prompt is longer than 131072 bytes"},
		"metadata":               {object{"metadata": []int{1}}, "", "ValidationError", "metadata must be a JSON object"},
		"no tenant":              {object{"tenantId": nil}, "", "ValidationError", "tenantId is not an id"},
		"no such tenant":         {object{"tenantId": ident.New()}, "", "NotFound", "tenant not found"},
		"another type":           {object{"prompt": 1}, "", "ValidationError", "input: "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if name == "another tenant's agent" {
				c.change["agentId"] = w.p.DB.World(t, "globex").AgentID
			}
			w.opened(arn()) // counts against the limit
			if c.arrange != "" {
				w.change(c.arrange)
			}
			input := w.input()
			for field, value := range c.change {
				input[field] = value
			}
			refused := arn()
			_, failed := w.open(refused, input)
			require.NotNil(t, failed)
			require.Equal(t, c.kind, failed.Type)
			require.Contains(t, failed.Message, c.message)
			require.Equal(t, []int{1, 1, 1, 1}, []int{w.count("executions"), w.count("threads"), w.count("thread_turns"), w.count("messages")}, "it left nothing")
		})
	}
}

// A function that dies before it has committed leaves nothing; the engine asks again.
func TestOpenIsCutShort(t *testing.T) {
	w := newWorld(t)
	hold := w.p.DB.Connect(t, w.p.DB.SuperURL)
	tx, err := hold.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `lock table messages in access exclusive mode`) // it waits before its last write
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	died := make(chan *messages.InvokeResponse_Error, 1)
	one := arn()
	go func() {
		_, failed := call[pkgschedule.Opened](ctx, w, "open-auto-thread", object{"executionArn": one, "input": w.input()})
		died <- failed
	}()
	require.Eventually(t, func() bool {
		var waits bool
		err := w.super.QueryRow(t.Context(), `select exists (select from pg_locks where not granted and relation = 'messages'::regclass)`).Scan(&waits)
		return err == nil && waits
	}, minute, tick)
	cancel()
	require.Equal(t, "InternalError", (<-died).Type)
	require.NoError(t, tx.Rollback(t.Context()))
	require.Eventually(t, func() bool { return w.count("executions")+w.count("threads") == 0 }, minute, tick)
	require.Equal(t, "AUTO-1", w.opened(one).ThreadID)
}
