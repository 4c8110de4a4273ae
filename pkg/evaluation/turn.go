package evaluation

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/evaluator"
	"github.com/agentplatform/agentplatform/pkg/evaluator/grade"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/trace"
)

const (
	scoreTime    = 24 * time.Hour  // that a grader may be out of reach
	scoreAgain   = 5 * time.Minute // after an attempt, before the sweep makes another one
	sweepSize    = 1000
	notReachable = "the grader could not be asked for a day"
)

// Scorer rates the turns of agents by the agents' evaluators.
type Scorer struct {
	DB     *postgres.DB
	Grader grade.Grader
	Again  func(ctx context.Context, t evaluator.Task) error // invokes the function of another turn
	Signal func(point string)                                // tests: called at every point where a crash is tried; nil: none
}

// Score rates one turn, or, without one, has those rated that nobody has rated. A turn that needs no scores, or has them, is left alone. An error
// means that the turn is to be rated later.
func (s *Scorer) Score(ctx context.Context, t evaluator.Task) error {
	if t.TurnID == "" {
		return s.sweep(ctx)
	}
	ctx = trace.In(ctx, trace.Scope{TenantID: t.TenantID, TurnID: t.TurnID})
	due, list, finished, err := s.claim(ctx, t)
	if err != nil || !due {
		return err
	}
	s.signal("rating claimed")
	x, err := Sample(ctx, s.DB.In(t.TenantID), t.TurnID, ByTurn)
	if err != nil {
		return err
	}
	graded, err := s.Grader.Grade(ctx, list, x)
	if err != nil && time.Since(finished.Time) > scoreTime {
		graded, err = grade.WithoutModel(list, x, notReachable), nil
	}
	if err != nil {
		return err
	}
	s.signal("rating graded")
	return s.DB.InTenant(ctx, t.TenantID, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `select from thread_turns where id = $1 and score_after is not null for no key update`, t.TurnID)
		if err != nil || tag.RowsAffected() == 0 { // somebody else was faster
			return err
		}
		var b pgx.Batch
		record(&b, t.TurnID, graded, ident.Now().Time)
		return tx.SendBatch(ctx, &b).Close()
	})
}

// claim reads by what the turn is to be rated, and puts the sweep off. What a run's case said is rated with the run, and not by the agent's evaluators;
// an agent that has none any more needs nothing.
func (s *Scorer) claim(ctx context.Context, t evaluator.Task) (due bool, list []evaluator.Spec, finished ident.Time, err error) {
	if !ident.Valid(t.TurnID) {
		return false, nil, finished, errors.New("evaluation: the turn's id is not one")
	}
	err = s.DB.InTenant(ctx, t.TenantID, func(tx pgx.Tx) error {
		due, list = false, nil
		rows, err := tx.Query(ctx, `update thread_turns t
			set score_after = case when x.turn_id is null and has_evaluators(a.evaluators, tp.evaluators) then clock_timestamp() + $2::interval end
			from agents a join agent_templates tp on tp.tenant_id = a.tenant_id and tp.id = a.template_id
				left join evaluation_results x on x.tenant_id = a.tenant_id and x.turn_id = $1
			where t.id = $1 and t.status = 'succeeded' and t.score_after is not null and a.tenant_id = t.tenant_id and a.id = t.agent_id
			returning t.score_after is not null, coalesce(a.evaluators, tp.evaluators, '[]'), t.finished_at`, t.TurnID, scoreAgain)
		if err != nil {
			return err
		}
		_, err = pgx.ForEachRow(rows, []any{&due, &list, &finished}, func() error { return nil })
		return err
	})
	return due, list, finished, err
}

func (s *Scorer) sweep(ctx context.Context) error {
	due, err := postgres.All(ctx, s.DB.Lookup(), pgx.RowToStructByPos[evaluator.Task], `select tenant_id::text, turn_id::text from lookup_unscored_turns($1)`, sweepSize)
	for _, t := range due {
		err = errors.Join(err, s.Again(ctx, t)) // the others must not wait for it
	}
	if len(due) > 0 {
		slog.InfoContext(ctx, "turns are rated late", "turns", len(due))
	}
	return err
}

func (s *Scorer) signal(point string) {
	if s.Signal != nil {
		s.Signal(point)
	}
}
