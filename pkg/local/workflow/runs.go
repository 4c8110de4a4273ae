package workflow

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// Start implements workflow.Runs. The run is on the disk when it returns.
func (e *Engine) Start(ctx context.Context, machine, name string, input json.RawMessage) (string, error) {
	if err := workflow.CheckMachine(machine); err != nil {
		return "", err
	}
	if err := workflow.CheckName(name); err != nil {
		return "", err
	}
	data, err := workflow.Data(input)
	if err != nil {
		return "", err
	}
	var made *bool
	var had *string
	err = e.ask(ctx, `select made, had from local_workflow.start($1, $2, $3, $4, $5)`, []any{machine, name, data, e.now(), e.running.Load() == 0},
		func(rows pgx.Rows) error { return rows.Scan(&made, &had) })
	what := "run " + name + " of machine " + machine
	switch {
	case err != nil:
		return "", about(what, err)
	case made == nil:
		return "", about(what, workflow.ErrNoMachine)
	case *made:
		e.Look()
	case had == nil: // it was there, and is deleted at this moment
		return "", about(what, workflow.ErrThrottled)
	case *had != data:
		return "", about(what, workflow.ErrRunExists)
	}
	return e.arn("execution", machine) + ":" + name, nil
}

// Stop implements workflow.Runs.
func (e *Engine) Stop(ctx context.Context, run, code, cause string) error {
	machine, name, err := e.owns(run)
	if err != nil {
		return err
	}
	code, cause = reason(code, cause)
	found, ended := false, false
	err = e.ask(ctx, `select local_workflow.finish(id, $3, $4, 'ABORTED', null, $5, $6) from local_workflow.runs where machine = $1 and name = $2`,
		[]any{machine, name, e.now(), e.config.Ended != nil, code, cause}, func(rows pgx.Rows) error {
			found = true
			return rows.Scan(&ended)
		})
	switch {
	case err != nil:
		return about("run "+run, err)
	case !found:
		return about("run "+run, workflow.ErrNoRun)
	case ended:
		signal(e.ended)
	}
	return nil
}

const runColumns = `machine, name, status, input, output, error, cause, started, ended`

// scanRun reads runColumns, after what comes before them.
func (e *Engine) scanRun(rows pgx.Rows, before ...any) (r workflow.Run, machine string, err error) {
	var name string
	var ended *time.Time
	var input string
	var output *string
	err = rows.Scan(append(before, &machine, &name, &r.Status, &input, &output, &r.Error, &r.Cause, &r.Started, &ended)...)
	r.ID, r.Input = e.arn("execution", machine)+":"+name, json.RawMessage(input)
	if output != nil {
		r.Output = json.RawMessage(*output)
	}
	if ended != nil {
		r.Ended = *ended
	}
	return r, machine, err
}

// Describe implements workflow.Runs.
func (e *Engine) Describe(ctx context.Context, run string) (r workflow.Run, err error) {
	machine, name, err := e.owns(run)
	if err != nil {
		return r, err
	}
	found := false
	err = e.ask(ctx, `select `+runColumns+` from local_workflow.runs where machine = $1 and name = $2`, []any{machine, name}, func(rows pgx.Rows) (err error) {
		found = true
		r, _, err = e.scanRun(rows)
		return err
	})
	if err == nil && !found {
		err = workflow.ErrNoRun
	}
	return r, about("run "+run, err)
}

// History implements workflow.Runs.
func (e *Engine) History(ctx context.Context, run string, after, limit int) (steps []workflow.Step, err error) {
	machine, name, err := e.owns(run)
	if err != nil {
		return nil, err
	}
	found := false
	err = e.ask(ctx, `select s.* from local_workflow.runs r left join lateral (
			select seq, visit, at, kind, state, type, data, error, cause from local_workflow.steps where run = r.id and seq > $3 order by seq limit $4) s on true
		where r.machine = $1 and r.name = $2 order by s.seq`, []any{machine, name, after, limit}, func(rows pgx.Rows) error {
		found = true
		if rows.RawValues()[0] == nil {
			return nil // none after that
		}
		var s workflow.Step
		var data *string
		if err := rows.Scan(&s.Seq, &s.Visit, &s.At, &s.Kind, &s.State, &s.Type, &data, &s.Error, &s.Cause); err != nil {
			return err
		}
		switch {
		case data == nil:
		case s.Kind == workflow.StateEntered:
			s.Input = json.RawMessage(*data)
		default:
			s.Output = json.RawMessage(*data)
		}
		steps = append(steps, s)
		return nil
	})
	if err == nil && !found {
		err = workflow.ErrNoRun
	}
	return steps, about("run "+run, err)
}

// arn is a name's, as the cloud has it.
func (e *Engine) arn(kind, name string) string {
	return "arn:aws:states:" + e.config.Region + ":" + e.config.Account + ":" + kind + ":" + e.config.Prefix + name
}

// owns takes a run's ARN apart.
func (e *Engine) owns(run string) (machine, name string, err error) {
	rest, ours := strings.CutPrefix(run, e.arn("execution", ""))
	machine, name, two := strings.Cut(rest, ":")
	if !ours || !two || workflow.CheckMachine(machine) != nil || workflow.CheckName(name) != nil {
		return "", "", about("run "+cutID(run), workflow.ErrNoRun)
	}
	return machine, name, nil
}

// cutID is an id that somebody made up, for a message.
func cutID(run string) string { return strings.ToValidUTF8(run[:min(len(run), 200)], "\uFFFD") }

// reason is an error's code and text as the database keeps them: it has no NUL in a text.
func reason(code, cause string) (string, string) {
	code, cause = workflow.Reason(code, cause)
	return strings.ReplaceAll(code, "\x00", " "), strings.ReplaceAll(cause, "\x00", " ")
}
