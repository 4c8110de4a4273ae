package schedule_test

import (
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	pkgschedule "github.com/agentplatform/agentplatform/pkg/schedule"
)

// execution is a run of the state machine, and the data that goes through it.
type execution struct {
	w    *world
	arn  string
	data object
}

// execution is a new one of that input.
func (w *world) execution(input object) *execution {
	return &execution{w: w, data: input, arn: "arn:aws:states:eu-west-1:123456789012:execution:agentplatform-test-auto-thread:" + ident.New()}
}

// opened is one of an occurrence of the schedule, opened.
func (w *world) opened(s pkgschedule.Schedule) (*execution, pkgschedule.Step) {
	w.t.Helper()
	x := w.due(s)
	step, failed := x.open()
	require.Nil(w.t, failed)
	return x, step
}

// due is one of another occurrence of the schedule.
func (w *world) due(s pkgschedule.Schedule) *execution {
	w.occurrences++
	return w.at(s, w.began.Add(-time.Duration(w.occurrences)*time.Second)) // each a second of its own, however slow a test is
}

func (w *world) at(s pkgschedule.Schedule, occurrence time.Time) *execution {
	return w.execution(object{"tenantId": w.TenantID, "scheduleId": s.ID, "occurrence": occurrence.UTC().Format(time.RFC3339)})
}

func (x *execution) state() object { return object{"executionArn": x.arn, "input": x.data} }

func (x *execution) open() (pkgschedule.Step, *messages.InvokeResponse_Error) {
	x.w.t.Helper()
	step, failed := call[pkgschedule.Step](x.w.t.Context(), x.w, "open-auto-thread", x.state())
	if failed == nil {
		x.data["step"] = step
	}
	return step, failed
}

// run registers for the turn's end with a new token, and has it dispatched.
func (x *execution) run() (token string, failed *messages.InvokeResponse_Error) {
	x.w.t.Helper()
	token = x.w.tasks.task()
	return token, x.register(token)
}

func (x *execution) register(token string) *messages.InvokeResponse_Error {
	x.w.t.Helper()
	step, _ := x.data["step"].(pkgschedule.Step)
	_, failed := call[object](x.w.t.Context(), x.w, "run-auto-turn", object{"tenantId": x.data["tenantId"], "turnId": step.TurnID, "token": token})
	return failed
}

// turn runs the execution's turn to its end.
func (x *execution) turn() answer {
	x.w.t.Helper()
	token, failed := x.run()
	require.Nil(x.w.t, failed)
	a := x.w.answered(token)
	if a.Failure != nil {
		x.data["failure"] = a.Failure
	}
	return a
}

func (x *execution) next() (pkgschedule.Step, *messages.InvokeResponse_Error) {
	x.w.t.Helper()
	return call[pkgschedule.Step](x.w.t.Context(), x.w, "next-auto-turn", x.state())
}

func (x *execution) close() (pkgschedule.Result, *messages.InvokeResponse_Error) {
	x.w.t.Helper()
	return call[pkgschedule.Result](x.w.t.Context(), x.w, "close-auto-thread", x.state())
}

// fails gives the data what the machine has caught.
func (x *execution) fails(f *pkgschedule.Failure) { x.data["failure"] = f }

// whole runs the machine from its start to its end, each function twice, as an engine may.
func (x *execution) whole() pkgschedule.Result {
	x.w.t.Helper()
	step, failed := x.open()
	again, _ := x.open()
	require.Equal(x.w.t, step, again)
	for failed == nil && step.Action == pkgschedule.RunTurn {
		if a := x.turn(); a.Failure != nil || !step.Loops {
			break
		}
		if step, failed = x.next(); failed == nil {
			again, _ = x.next()
			require.Equal(x.w.t, step, again)
			x.data["step"] = step
		}
	}
	if failed != nil {
		x.fails(caught(x.w.t, failed))
	}
	r, failed := x.close()
	require.Nil(x.w.t, failed)
	last, failed := x.close()
	require.Nil(x.w.t, failed)
	require.Equal(x.w.t, r, last)
	return r
}

// record is a row of executions.
type record struct {
	Trigger, Status    string
	TurnID             *string
	StopReason         *string
	ErrorType, Error   *string
	Finished           bool
	FinishedAfterStart bool
}

func (x *execution) record() (r record) {
	x.w.t.Helper()
	require.NoError(x.w.t, x.w.super.QueryRow(x.w.t.Context(), `select trigger, status, turn_id, stop_reason, error_type, error, finished_at is not null,
		coalesce(finished_at >= started_at, false) from executions where arn = $1 and tenant_id = $2`, x.arn, x.data["tenantId"]).
		Scan(&r.Trigger, &r.Status, &r.TurnID, &r.StopReason, &r.ErrorType, &r.Error, &r.Finished, &r.FinishedAfterStart))
	return r
}
