package local

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// heard is a call of a function, which waits for what the function is to answer.
type heard struct {
	function string
	payload  string
	answer   chan func(ctx context.Context) ([]byte, error)
}

// withEngines is as much of a platform as the clock and the engine stand on, with functions that the test plays.
func withEngines(t *testing.T, db *pgtest.DB, rows ...manifest.Row) (*Platform, <-chan heard) {
	t.Helper()
	calls := make(chan heard)
	functions := map[string]lambda.Handler{}
	p := &Platform{config: Config{Rows: manifest.Manifest{Rows: rows}}, database: &database{owner: db.SuperURL}, queue: newQueue(), failed: make(chan error, 4)}
	for _, row := range rows {
		functions[row.Name] = does(func(ctx context.Context, payload []byte) ([]byte, error) {
			h := heard{row.Name, string(payload), make(chan func(context.Context) ([]byte, error), 1)}
			select {
			case calls <- h:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			return (<-h.answer)(ctx)
		})
	}
	p.queue.serve(p.config.Rows, functions)
	require.NoError(t, p.openEngines(t.Context()))
	p.runEngines()
	t.Cleanup(func() {
		if p.stopEngines != nil {
			p.stopEngines()
			p.engines.Wait()
		}
		p.queue.close()
		p.closeEngines()
		require.Empty(t, p.failed)
	})
	return p, calls
}

func row(name string, on ...string) manifest.Row {
	return manifest.Row{Name: name, On: on, Timeout: 60}
}

// next is the next call of a function.
func next(t *testing.T, calls <-chan heard) heard {
	t.Helper()
	select {
	case h := <-calls:
		return h
	case <-time.After(time.Minute):
		t.Fatal("no function is called")
		return heard{}
	}
}

func says(text string) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return []byte(text), nil }
}

func fails(err error) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return nil, err }
}

// A schedule that is due starts the platform's own state machine, whose tasks are functions of the manifest; the same occurrence starts it once.
func TestASchedulesOccurrenceStartsItsExecution(t *testing.T) {
	p, calls := withEngines(t, pgtest.New(t), row("open-auto-thread"), row("close-auto-thread"))
	id := ident.New()
	input := `{"tenantId":"t","scheduleId":"` + id + `","occurrence":"` + clock.ScheduledTime + `"}`
	s := clock.Schedule{Name: id, Expression: "rate(1 day)", Enabled: true, Input: json.RawMessage(input)}
	require.NoError(t, p.clock.Put(t.Context(), s)) // its first is now
	opened := next(t, calls)
	require.Equal(t, "open-auto-thread", opened.function)
	var told struct {
		ExecutionARN string `json:"executionArn"`
		Input        struct {
			ScheduleID string `json:"scheduleId"`
			Occurrence time.Time
		}
	}
	require.NoError(t, json.Unmarshal([]byte(opened.payload), &told))
	require.Equal(t, id, told.Input.ScheduleID)
	occurrence := told.Input.Occurrence
	require.Equal(t, "arn:aws:states:us-east-1:000000000000:execution:agentplatform-local-auto-thread:"+id+"-"+occurrence.Format("20060102T150405Z"), told.ExecutionARN)
	opened.answer <- says(`{"action": "done"}`)

	s.Input = json.RawMessage(`{"changed":true}`)
	require.NoError(t, p.fire(t.Context(), s, occurrence), "the occurrence has been started")
	run, err := p.engine.Describe(t.Context(), told.ExecutionARN)
	require.NoError(t, err)
	require.NotContains(t, string(run.Input), "changed")
}

// How a run of a tenant's machine has ended is told to the rows of `event states`, and to nobody how others have.
func TestTheEndOfATenantsRunIsTold(t *testing.T) {
	p, calls := withEngines(t, pgtest.New(t), row("settle", "event states"), row("other", "invoke"))
	ends := func(machine string) string {
		require.NoError(t, p.engine.Put(t.Context(), machine, `{"StartAt": "A", "States": {"A": {"Type": "Fail", "Error": "Sorry", "Cause": "a secret"}}}`))
		run, err := p.engine.Start(t.Context(), machine, "run", json.RawMessage(`{"said": "a secret"}`))
		require.NoError(t, err)
		return run
	}
	ours := ends("ours")
	require.Eventually(t, func() bool {
		run, err := p.engine.Describe(t.Context(), ours)
		return err == nil && run.Status == workflow.Failed
	}, time.Minute, 10*time.Millisecond)
	run := ends("routine-" + ident.New())
	settle := next(t, calls)
	require.Equal(t, "settle", settle.function)
	var event map[string]any
	require.NoError(t, json.Unmarshal([]byte(settle.payload), &event))
	detail, _ := event["detail"].(map[string]any)
	require.Equal(t, []any{"aws.states", "Step Functions Execution Status Change", run, "run", "FAILED"},
		[]any{event["source"], event["detail-type"], detail["executionArn"], detail["name"], detail["status"]})
	require.NotContains(t, settle.payload, "secret")
	settle.answer <- says(`null`)
}

// What a task fails of has a name that a state machine may retry or catch, as in the cloud.
func TestATasksFailureHasItsName(t *testing.T) {
	quick := row("quick")
	quick.Timeout = 1
	p, calls := withEngines(t, pgtest.New(t), row("task"), quick)
	ask := func(ctx context.Context, function string, answer func(context.Context) ([]byte, error)) (string, error) {
		type result struct {
			text string
			err  error
		}
		over := make(chan result, 1)
		go func() {
			text, err := p.task(ctx, function, []byte(`{"n":1}`))
			over <- result{string(text), err}
		}()
		h := next(t, calls)
		require.JSONEq(t, `{"n":1}`, h.payload)
		h.answer <- answer
		r := <-over
		return r.text, r.err
	}
	text, err := ask(t.Context(), "task", says(`{"m":2}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"m":2}`, text)

	named := messages.InvokeResponse_Error{}
	_, err = ask(t.Context(), "task", fails(messages.InvokeResponse_Error{Type: "RateLimitExceeded", Message: "later"}))
	require.ErrorAs(t, err, &named)
	require.Equal(t, messages.InvokeResponse_Error{Type: "RateLimitExceeded", Message: "later"}, named)
	_, err = ask(t.Context(), "task", fails(errors.New("no")))
	require.ErrorAs(t, err, &named)
	require.Equal(t, "errorString", named.Type)
	_, err = ask(t.Context(), "task", func(context.Context) ([]byte, error) { panic("oh") })
	require.ErrorAs(t, err, &named)
	require.Equal(t, "string", named.Type)
	_, err = ask(t.Context(), "quick", func(ctx context.Context) ([]byte, error) {
		<-ctx.Done()
		return nil, messages.InvokeResponse_Error{Type: "InternalError", Message: "it was cut short"}
	})
	require.ErrorAs(t, err, &named)
	require.Equal(t, "Sandbox.Timedout", named.Type)

	ctx, stop := context.WithCancel(t.Context())
	_, err = ask(ctx, "task", func(context.Context) ([]byte, error) {
		stop()
		return nil, messages.InvokeResponse_Error{Type: "InternalError", Message: "it was cut short"}
	})
	require.Equal(t, context.Canceled, err, "the platform stops: that is no answer of the function")
	_, err = p.task(t.Context(), "missing", nil)
	require.ErrorContains(t, err, `no function "missing"`)
}

// What the platform's stop cuts short goes on at the next start.
func TestARunGoesOnAfterAStop(t *testing.T) {
	db := pgtest.New(t)
	p, calls := withEngines(t, db, row("task"))
	machine := "routine-" + ident.New()
	require.NoError(t, p.engine.Put(t.Context(), machine, `{"StartAt": "A", "States": {"A": {"Type": "Task", "Resource": "`+functionARN("task")+`", "End": true}}}`))
	run, err := p.engine.Start(t.Context(), machine, "run", json.RawMessage(`{}`))
	require.NoError(t, err)
	h := next(t, calls)
	h.answer <- func(ctx context.Context) ([]byte, error) {
		<-ctx.Done()
		return nil, messages.InvokeResponse_Error{Type: "InternalError", Message: "it was cut short"}
	}
	p.stopEngines()
	p.engines.Wait()

	again, calls := withEngines(t, db, row("task"))
	h = next(t, calls)
	h.answer <- says(`{"done":true}`)
	require.Eventually(t, func() bool {
		r, err := again.engine.Describe(t.Context(), run)
		return err == nil && r.Status == workflow.Succeeded && string(r.Output) == `{"done":true}`
	}, time.Minute, 10*time.Millisecond)
}
