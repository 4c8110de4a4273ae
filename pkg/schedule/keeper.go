package schedule

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/clock/due"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// Keeper keeps the clock in step with the database, which is what holds. It is safe for concurrent use, also by several processes.
//
// Whoever tells the clock of a schedule holds the schedule's lock, reads its row under it and tells what the row says. So of an update, a deletion and a
// drift check at the same time the last one tells what was committed last, and a schedule that is gone is not put again.
type Keeper struct {
	DB    *postgres.DB
	Clock clock.Clock
	Runs  workflow.Runs    // of the drift check: what starts missed occurrences
	Now   func() time.Time // tests; default time.Now
}

// asked is how long one call of the clock may take. The schedule's lock is held meanwhile, and a connection.
const asked = 10 * time.Second

func (k *Keeper) now() time.Time {
	if k.Now != nil {
		return k.Now()
	}
	return time.Now()
}

// Settle has the clock hold what the schedule's row says now, and takes away the row of a deleted one when the clock has forgotten it. An error leaves
// everything as it was committed: the drift check settles it.
func (k *Keeper) Settle(ctx context.Context, tenantID, id string) error {
	_, err := k.settle(ctx, tenantID, id, false)
	return err
}

// settle is Settle, and says how the clock differed from the row. look has it look into the clock; else what was told is taken for what is there.
func (k *Keeper) settle(ctx context.Context, tenantID, id string, look bool) (found Drift, err error) {
	err = k.DB.InTenant(ctx, tenantID, func(tx pgx.Tx) error {
		found = ""
		if err := lockClock(ctx, tx, id); err != nil {
			return err
		}
		s, err := oneSchedule(ctx, tx, id, ``)
		if fault.IsMissing(err) { // somebody else was here
			return nil
		}
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, asked)
		defer cancel()
		if s.deleted {
			found = Undeleted
			if err := k.Clock.Delete(ctx, id); err != nil {
				return err
			}
			_, err = tx.Exec(ctx, `delete from schedules where id = $1`, id)
			return err
		}
		return k.put(ctx, tx, tenantID, s, look, &found)
	})
	return found, err
}

// put has the clock hold a locked schedule.
func (k *Keeper) put(ctx context.Context, tx pgx.Tx, tenantID string, s Schedule, look bool, found *Drift) error {
	c := s.onClock(tenantID)
	if s.putRevision == s.revision {
		if !look {
			return nil
		}
		var err error
		if *found, err = k.compare(ctx, c); err != nil || *found == "" {
			return err
		}
	} else {
		*found = Untold
	}
	err := k.Clock.Put(ctx, c)
	if errors.Is(err, clock.ErrNeverRuns) { // its last occurrence has passed meanwhile: there is nothing to tell
		if *found, err = "", k.Clock.Delete(ctx, s.ID); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `update schedules set put_revision = $2 where id = $1`, s.ID, s.revision)
	return err
}

// compare says how what the clock holds differs from what it is to hold.
func (k *Keeper) compare(ctx context.Context, want clock.Schedule) (Drift, error) {
	got, err := k.Clock.Get(ctx, want.Name)
	if errors.Is(err, clock.ErrNotFound) {
		return Missing, nil
	}
	if err != nil {
		return "", err
	}
	enabled := want.Enabled
	want.Enabled = false // one whose last occurrence is over differs in nothing
	if want, err = due.Check(want, k.now()); err != nil {
		return "", err
	}
	switch {
	case got.Enabled != enabled:
		return Switched, nil
	case got.Expression != want.Expression || got.TimeZone != want.TimeZone || !got.Start.Equal(want.Start) || !got.End.Equal(want.End) || !bytes.Equal(got.Input, want.Input):
		return Changed, nil
	}
	return "", nil
}

// Undo takes away a schedule that the clock would not have, and lets whoever made it try again with the same token.
func (k *Keeper) Undo(ctx context.Context, tenantID, userID, id, operation string, token *string) error {
	return k.DB.InTenant(ctx, tenantID, func(tx pgx.Tx) error {
		if err := lockClock(ctx, tx, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `delete from schedules where id = $1 and put_revision = 0`, id); err != nil || token == nil {
			return err
		}
		_, err := tx.Exec(ctx, `delete from client_tokens where user_id = $1 and operation = $2 and token = $3`, userID, operation, *token)
		return err
	})
}

// forget deletes what the clock holds under a name that no schedule has.
func (k *Keeper) forget(ctx context.Context, name string) (found Drift, err error) {
	err = k.DB.Unbound(ctx, func(tx pgx.Tx) error {
		found = ""
		if ident.Valid(name) {
			if err := lockClock(ctx, tx, name); err != nil {
				return err
			}
			var there bool
			if err := tx.QueryRow(ctx, `select lookup_schedule($1)`, name).Scan(&there); err != nil || there {
				return err
			}
		}
		ctx, cancel := context.WithTimeout(ctx, asked)
		defer cancel()
		if _, err := k.Clock.Get(ctx, name); err != nil {
			if errors.Is(err, clock.ErrNotFound) { // somebody else was here
				return nil
			}
			return err
		}
		found = Unknown
		return k.Clock.Delete(ctx, name)
	})
	return found, err
}

// lockClock keeps others from telling the clock of the schedule until tx ends.
func lockClock(ctx context.Context, tx pgx.Tx, id string) error {
	_, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended($1, 0))`, "clock of "+id)
	return err
}
