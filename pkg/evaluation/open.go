package evaluation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

const tookTooLong = "the run took longer than a day"

// openCase is a case whose thread is open.
type openCase struct {
	number   int
	expected *string
	opened   ident.Time
	tries    int
	turnID   string
	threadID string // public
	status   turn.Status
}

// look renews the lease and says how the run stands: the cases that have a thread and no result, and how many have neither.
func (w *work) look(ctx context.Context) (cases []openCase, waiting int, err error) {
	err = w.DB.InTenant(ctx, w.TenantID, func(tx pgx.Tx) (err error) {
		cases, waiting = nil, 0
		if err := w.hold(ctx, tx); err != nil {
			return err
		}
		if time.Since(w.created.Time) > runTime {
			if _, err := tx.Exec(ctx, `update evaluation_results set status = 'failed', error = $2, finished_at = $3 where run_id = $1 and status = 'waiting'`,
				w.RunID, tookTooLong, ident.Now()); err != nil {
				return err
			}
		}
		if cases, err = openCases(ctx, tx, w.RunID); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `select count(*) from evaluation_results where run_id = $1 and status = 'waiting'`, w.RunID).Scan(&waiting)
	})
	return cases, waiting, err
}

// openCases are the cases that have a thread and no result.
func openCases(ctx context.Context, q postgres.Querier, runID string) ([]openCase, error) {
	return postgres.All(ctx, q, func(row pgx.CollectableRow) (openCase, error) {
		var c openCase
		var public ident.Thread
		err := row.Scan(&c.number, &c.expected, &c.opened, &c.tries, &c.turnID, &c.status, &public.Prefix, &public.Number)
		c.threadID = public.String()
		return c, err
	}, `select x.number, x.expected, x.opened_at, x.tries, x.turn_id, t.status, th.prefix, th.number from evaluation_results x
		join thread_turns t on t.tenant_id = x.tenant_id and t.id = x.turn_id join threads th on th.tenant_id = t.tenant_id and th.uuid = t.thread_uuid
		where x.run_id = $1 and x.status = 'running' order by x.number`, runID)
}

// hold locks the run until tx ends and renews its lease; errLost when it is over or another worker's.
func (w *work) hold(ctx context.Context, tx pgx.Tx) error {
	tag, err := tx.Exec(ctx, `update evaluation_runs set lease_until = clock_timestamp() + $3::interval where id = $1 and lease_id = $2 and status = 'running'`,
		w.RunID, w.lease, w.leaseTime())
	if err == nil && tag.RowsAffected() == 0 {
		return errLost
	}
	return err
}

// open gives the next case to the agent: thread, message, queued turn and the case's row in one transaction. A case that the agent does not take for a
// reason that stays fails with it; at a rate limit it waits (w.limited).
func (w *work) open(ctx context.Context) (opened bool, err error) {
	var turnID string
	var number int
	err = w.DB.InTenant(ctx, w.TenantID, func(tx pgx.Tx) (err error) {
		if err := w.hold(ctx, tx); err != nil {
			return err
		}
		var input string
		var metadata *string
		turnID = ""
		err = tx.QueryRow(ctx, `select number, input, metadata::text from evaluation_results where run_id = $1 and status = 'waiting' order by number limit 1 for no key update`,
			w.RunID).Scan(&number, &input, &metadata)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		turnID, err = w.start(ctx, tx, number, input, metadata)
		return err
	})
	if err == nil && turnID == "" {
		return false, nil
	}
	var refused *fault.Error
	switch {
	case err == nil:
		w.signal("opened")
		if err := w.Dispatch(ctx, w.TenantID, turnID); err != nil {
			slog.WarnContext(ctx, "dispatch failed; the reaper tries again", "tenant_id", w.TenantID, "turn_id", turnID, "error", err)
		}
		return true, nil
	case errors.As(err, &refused) && refused.Type == fault.RateLimitExceeded:
		w.limited = true
		return false, nil
	case errors.As(err, &refused) && refused.Type != fault.InternalError:
		return false, w.refuse(ctx, number, refused.Message)
	}
	return false, err
}

func (w *work) start(ctx context.Context, tx pgx.Tx, number int, input string, metadata *string) (turnID string, err error) {
	a, err := agent.Get(ctx, tx, w.agentID)
	if err != nil {
		return "", err
	}
	title := fmt.Sprintf("%s #%d", w.name, number)
	about, err := w.about(number, metadata)
	if err != nil {
		return "", err
	}
	th := thread.Thread{Channel: Eval, Title: &title, Metadata: &about}
	return turn.Open(ctx, tx, w.TenantID, a, &th, turn.Words{Body: input}, func(b *pgx.Batch, turnID string) {
		b.Queue(`update evaluation_results set status = 'running', turn_id = $3, opened_at = $4 where run_id = $1 and number = $2`, w.RunID, number, turnID, ident.Now())
	})
}

// about is the metadata of a case's thread.
func (w *work) about(number int, metadata *string) (string, error) {
	about := struct {
		Evaluation string          `json:"evaluationId"`
		Run        string          `json:"evaluationRunId"`
		Case       int             `json:"case"`
		Metadata   json.RawMessage `json:"metadata,omitempty"`
	}{w.evaluation, w.RunID, number, nil}
	if metadata != nil {
		about.Metadata = json.RawMessage(*metadata)
	}
	text, err := json.Marshal(about)
	return string(text), err
}

// refuse ends a case that has no thread.
func (w *work) refuse(ctx context.Context, number int, reason string) error {
	return w.DB.InTenant(ctx, w.TenantID, func(tx pgx.Tx) error {
		if err := w.hold(ctx, tx); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `update evaluation_results set status = 'failed', error = $3, finished_at = $4 where run_id = $1 and number = $2 and status = 'waiting'`,
			w.RunID, number, strings.ToValidUTF8(reason, "�"), ident.Now())
		return err
	})
}
