package schedule

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/budget"
	"github.com/agentplatform/agentplatform/pkg/evaluation"
	"github.com/agentplatform/agentplatform/pkg/evaluator/grade"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// Looper decides what comes after a turn of an execution that loops.
type Looper struct {
	DB     *postgres.DB
	Grader grade.Grader
	Signal func(point string) // tests: called at every point where a crash is tried; nil: none
}

// ErrGrader says that the goal could not be rated: the grader's model may answer later.
var ErrGrader = errors.New("schedule: the goal could not be rated")

// Next rates the turn that s names by the loop's goal, records the iteration, and queues the next turn in the same thread, unless the loop stops. It
// does each of these once, however often it is asked. Whoever called must then deliver the notices.
//
// A loop stops, in this order, when its goal is reached, when there have been as many turns as may be, when its budget is spent, when a person has taken
// up the thread, or when no budget covers another turn. What else keeps the next turn from being queued is an error, as in Open, and the iteration has been recorded.
func (l *Looper) Next(ctx context.Context, s State) (step Step, notices []notify.Notice, err error) {
	rated, err := l.rate(ctx, s)
	if err != nil || !rated {
		return Step{Action: CloseThread}, nil, err
	}
	l.signal("iteration rated")
	err = inTenant(ctx, l.DB, s.Input.TenantID, func(tx pgx.Tx) error {
		step, notices = Step{Action: CloseThread}, nil
		e, i, err := last(ctx, tx, s)
		if err != nil || i == nil {
			return err
		}
		if asked := s.Input.Step; asked == nil || asked.TurnID == nil || *asked.TurnID != i.turnID { // the next turn has been queued
			step, err = e.turnStep(ctx, tx)
			return err
		}
		step, notices, err = e.next(ctx, tx, s.Input.TenantID, *i)
		return err
	})
	l.signal("iteration decided")
	return step, notices, err
}

// iteration is the newest of an execution.
type iteration struct {
	number   int
	turnID   string
	threadID string
	status   turn.Status
	finished bool // rated
	reached  *bool
}

// last locks the execution and reads its newest iteration; nil when there is nothing to go on with.
func last(ctx context.Context, tx pgx.Tx, s State) (execution, *iteration, error) {
	e, err := take(ctx, tx, s)
	if errors.Is(err, errElsewhere) || err == nil && (e.status != Running || e.loop == nil || e.stop != nil || e.turnID == nil) {
		return e, nil, nil
	}
	if err != nil {
		return e, nil, err
	}
	var i iteration
	var public ident.Thread
	err = tx.QueryRow(ctx, `select i.number, i.turn_id, t.status, i.finished_at is not null, i.goal_reached, th.prefix, th.number from execution_iterations i
			join thread_turns t on t.tenant_id = i.tenant_id and t.id = i.turn_id join threads th on th.tenant_id = t.tenant_id and th.uuid = t.thread_uuid
		where i.execution_id = $1 order by i.number desc limit 1`, e.id).Scan(&i.number, &i.turnID, &i.status, &i.finished, &i.reached, &public.Prefix, &public.Number)
	i.threadID = public.String()
	return e, &i, err
}

// rate rates the newest iteration if its turn is over and nobody has. It reports false when there is nothing to go on with.
//
// The grader is asked outside of any transaction. Two that rate at once both pay for it, and the first counts.
func (l *Looper) rate(ctx context.Context, s State) (goesOn bool, err error) {
	var e execution
	var i *iteration
	err = inTenant(ctx, l.DB, s.Input.TenantID, func(tx pgx.Tx) error {
		e, i, err = last(ctx, tx, s)
		return err
	})
	if err != nil || i == nil {
		return false, err
	}
	switch i.status {
	case turn.Queued, turn.Running, turn.Waiting:
		if s.Input.Step != nil && s.Input.Step.TurnID != nil && *s.Input.Step.TurnID != i.turnID {
			return true, nil // that is the next one
		}
		return false, fault.Invalid("the turn is not over")
	case turn.Succeeded:
	default:
		return false, fault.Invalid("the turn is %s", i.status)
	}
	if i.finished {
		return true, nil
	}
	var graded grade.Graded
	if len(e.loop.Goal) > 0 {
		x, err := evaluation.Sample(ctx, l.DB.In(s.Input.TenantID), i.turnID, evaluation.ByThread) // a continuation says nothing of what is wanted
		if err != nil {
			return false, err
		}
		if graded, err = l.Grader.Grade(ctx, e.loop.Goal, x); err != nil {
			return false, fmt.Errorf("%w: %w", ErrGrader, err)
		}
	}
	l.signal("iteration graded")
	return true, inTenant(ctx, l.DB, s.Input.TenantID, func(tx pgx.Tx) error {
		_, now, err := last(ctx, tx, s)
		if err != nil || now == nil || now.number != i.number || now.finished { // somebody else was faster
			return err
		}
		var b pgx.Batch
		record(&b, e.id, *i, graded, len(e.loop.Goal) > 0)
		return tx.SendBatch(ctx, &b).Close()
	})
}

// record queues what became of an iteration, and charges what rating it took to the agent and space, as of any turn.
func record(b *pgx.Batch, executionID string, i iteration, g grade.Graded, rated bool) {
	now := ident.Now()
	var tokens, micros int64
	for _, s := range g.Spent {
		tokens += int64(s.Usage.InputTokens + s.Usage.CacheReadTokens + s.Usage.CacheWriteTokens + s.Usage.OutputTokens)
		if s.CostMicros != nil {
			micros += *s.CostMicros
		}
		budget.Charge(b, i.turnID, s.ModelID, s.Usage, s.CostMicros, now.Time)
	}
	var goal *bool
	scores := any(nil)
	if rated {
		goal, scores = new(reached(g.Scores)), g.Scores
	}
	b.Queue(`update execution_iterations set scores = $3, goal_reached = $4, grading_tokens = $5, grading_cost_micros = $6, finished_at = $7
		where execution_id = $1 and number = $2`, executionID, i.number, scores, goal, tokens, micros, now)
}

// next stops the loop or queues its next turn.
func (e execution) next(ctx context.Context, tx pgx.Tx, tenantID string, i iteration) (Step, []notify.Notice, error) {
	switch {
	case i.reached != nil && *i.reached:
		return e.stopped(ctx, tx, GoalReached)
	case i.number >= e.loop.MaxIterations:
		return e.stopped(ctx, tx, AtMaximum)
	}
	if spent, err := e.spent(ctx, tx); err != nil {
		return Step{}, nil, err
	} else if spent {
		return e.stopped(ctx, tx, BudgetSpent)
	}
	prompt := DefaultContinuation
	if e.loop.ContinuationPrompt != nil {
		prompt = *e.loop.ContinuationPrompt
	}
	inner, err := tx.Begin(ctx) // a budget that does not cover the turn ends the statements, and not the transaction
	if err != nil {
		return Step{}, nil, err
	}
	c, err := turn.Continue(ctx, inner, tenantID, i.threadID, i.turnID, prompt)
	if err != nil {
		if rollback := inner.Rollback(ctx); rollback != nil || fault.From(err).Type != fault.BudgetExceeded {
			return Step{}, nil, err
		}
		return e.stopped(ctx, tx, BudgetSpent)
	}
	if err := inner.Commit(ctx); err != nil {
		return Step{}, nil, err
	}
	if c.TurnID == "" {
		return e.stopped(ctx, tx, TakenOver)
	}
	var b pgx.Batch
	b.Queue(`update executions set turn_id = $2 where id = $1`, e.id, c.TurnID)
	queueIteration(&b, tenantID, e.id, i.number+1, c.TurnID)
	return Step{Action: RunTurn, Loops: true, ThreadID: &i.threadID, TurnID: &c.TurnID}, c.Notices, tx.SendBatch(ctx, &b).Close()
}

// spent reports whether the loop's own budget is: what its turns and their rating used together. A turn whose cost is unknown spends any amount of money.
func (e execution) spent(ctx context.Context, tx pgx.Tx) (bool, error) {
	if e.loop.Budget == nil {
		return false, nil
	}
	var tokens, micros int64
	var unknown bool
	err := tx.QueryRow(ctx, `select sum(t.input_tokens + t.output_tokens + i.grading_tokens), coalesce(sum(t.cost_micros), 0) + sum(i.grading_cost_micros), bool_or(t.cost_micros is null)
		from execution_iterations i join thread_turns t on t.tenant_id = i.tenant_id and t.id = i.turn_id where i.execution_id = $1`, e.id).Scan(&tokens, &micros, &unknown)
	limits := *e.loop.Budget
	return limits.Tokens != nil && tokens >= *limits.Tokens || limits.USDMicros != nil && (unknown || micros >= *limits.USDMicros), err
}

func (e execution) stopped(ctx context.Context, tx pgx.Tx, why StopReason) (Step, []notify.Notice, error) {
	_, err := tx.Exec(ctx, `update executions set stop_reason = $2 where id = $1`, e.id, why)
	return Step{Action: CloseThread}, nil, err
}

func (l *Looper) signal(point string) {
	if l.Signal != nil {
		l.Signal(point)
	}
}
