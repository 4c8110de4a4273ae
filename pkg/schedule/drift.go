package schedule

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/metric"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// Drift is a way in which clock and database differ; empty: they do not.
type Drift string

const (
	Missing   Drift = "missing"   // the clock has lost it
	Unknown   Drift = "unknown"   // the clock has one that the database has not
	Switched  Drift = "switched"  // one runs it, the other does not
	Changed   Drift = "changed"   // it is due at other times, or tells something else
	Untold    Drift = "untold"    // the clock has not been told of the last change
	Undeleted Drift = "undeleted" // the clock has not been told that it is deleted
)

// Drifts are all of them, in the order of the log's line.
var Drifts = []Drift{Missing, Unknown, Switched, Changed, Untold, Undeleted}

// The drift check's measures.
const (
	rounds  = 5 * time.Minute // between two checks
	most    = 4 * time.Minute // that a check takes; what it does not reach is the next one's
	asking  = 3 * time.Minute // of it, with the clock: what was missed is started while the clock is away, too
	grace   = time.Minute     // what was changed since is being told by whoever changed it, and is no drift
	looks   = 200             // that a check takes into the clock, each a call of it: all schedules are looked at within as many checks as there are 200s of them
	perPage = 1000            // rows of the database
	lines   = 50              // of a check, in the log: of what was lost as a whole the count says enough
)

// Report is what a drift check has found, and settled.
type Report struct {
	Schedules int           // that the database has
	Found     map[Drift]int // nil: the clock could not be asked what it has
	Late      int           // occurrences that were missed and are run now

	lines int // that were written
}

// held is a row of lookup_schedules.
type held struct {
	tenantID string
	Schedule
	changedAt time.Time
}

// Reconcile is the drift check: it makes the clock hold what the database says, starts what was missed, counts both, and says so in the metrics. An error
// is of what could not be settled or started; all else is. A clock that is busy is left alone: the next check goes on.
func (k *Keeper) Reconcile(ctx context.Context) (Report, error) {
	report := Report{}
	defer func() { report.emit(context.WithoutCancel(ctx)) }()
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	atClock, cancelClock := context.WithTimeout(ctx, asking)
	defer cancelClock()
	onClock, away := k.list(atClock) // before the database: what is on the clock then was in the database before
	rows, err := k.rows(ctx)
	if err != nil {
		return report, errors.Join(away, err)
	}
	report.Schedules = len(rows)
	var failed []error
	if away == nil {
		report.Found = map[Drift]int{}
		failed = append(failed, k.compareAll(atClock, &report, rows, onClock))
	} else {
		failed = append(failed, fmt.Errorf("the clock's schedules: %w", away))
	}
	for _, r := range rows {
		if r.Missed == MissedRunOnce && ctx.Err() == nil {
			failed = append(failed, k.late(ctx, &report, r))
		}
	}
	failed = append(failed, k.unstarted(ctx), k.abandoned(ctx))
	return report, errors.Join(failed...)
}

// compareAll settles what differs from the clock's list, looks into some of what does not, and deletes at the clock what is not in the database.
func (k *Keeper) compareAll(ctx context.Context, report *Report, rows []held, onClock map[string]bool) error {
	parts := uint64(len(rows)/looks + 1)
	part := uint64(k.now().Unix()/int64(rounds/time.Second)) % parts
	var failed []error
	leave := func(err error) bool {
		failed = append(failed, err)
		return errors.Is(err, clock.ErrThrottled) || ctx.Err() != nil
	}
	unknown := maps.Clone(onClock)
	for _, r := range rows {
		delete(unknown, r.ID)
	}
	for _, r := range rows {
		enabled, there := onClock[r.ID]
		suspect := r.deleted || !r.Settled || !there || enabled != r.Enabled
		if (suspect || slice(r.ID, parts) == part) && leave(k.check(ctx, report, r)) {
			return errors.Join(failed...)
		}
	}
	for name := range unknown {
		found, err := k.forget(ctx, name)
		report.count(ctx, found, name, err)
		if leave(err) {
			break
		}
	}
	return errors.Join(failed...)
}

// slice is the check, of so many, that looks at a schedule although nothing is known against it.
func slice(id string, of uint64) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id))
	return h.Sum64() % of
}

// check settles one schedule.
func (k *Keeper) check(ctx context.Context, report *Report, r held) error {
	found, err := k.settle(ctx, r.tenantID, r.ID, true)
	if k.now().Sub(r.changedAt) < grace {
		found = "" // it is settled all the same
	}
	report.count(ctx, found, r.ID, err)
	return err
}

func (r *Report) count(ctx context.Context, found Drift, name string, err error) {
	if (err != nil || found != "") && r.lines < lines {
		r.lines++
		tell(ctx, found, name, err)
	}
	if found != "" {
		r.Found[found]++
	}
}

func tell(ctx context.Context, found Drift, name string, err error) {
	if err != nil {
		slog.ErrorContext(ctx, "a schedule cannot be settled with the clock; the next check tries again", "schedule_id", name, "error", err)
		return
	}
	slog.WarnContext(ctx, "a schedule had drifted from the clock and is settled", "schedule_id", name, "drift", string(found))
}

// emit says what was found: one figure for all, one for each way. None of drift is said when nobody looked: that is no drift of zero.
func (r *Report) emit(ctx context.Context) {
	figures := []metric.Figure{metric.Of("schedule.late", r.Late)}
	if r.Found != nil {
		total := 0
		for _, d := range Drifts {
			total += r.Found[d]
			figures = append(figures, metric.Of("schedule.drift."+string(d), r.Found[d]))
		}
		figures = append(figures, metric.Of("schedule.drift", total))
	}
	metric.Emit(ctx, metric.Event{Line: "schedules reconciled", About: []slog.Attr{slog.Int("schedules", r.Schedules)}, Sets: []metric.Set{{Figures: figures}}})
}

// list is all that the clock has: names, and whether they are enabled.
func (k *Keeper) list(ctx context.Context) (map[string]bool, error) {
	all := map[string]bool{}
	for token := (*string)(nil); ; {
		p, err := k.Clock.List(ctx, token)
		if err != nil {
			return nil, err
		}
		for _, e := range p.Items {
			all[e.Name] = e.Enabled
		}
		if token = p.NextToken; token == nil {
			return all, nil
		}
	}
}

// rows are all schedules of all tenants, deleted ones included, as far as the clock has to do with them.
func (k *Keeper) rows(ctx context.Context) (all []held, err error) {
	for {
		var after *string
		if len(all) > 0 {
			after = &all[len(all)-1].ID
		}
		page, err := postgres.All(ctx, k.DB.Lookup(), scanHeld, `select tenant_id, id, expression, time_zone, start_at, end_at, enabled, missed, since, last_occurrence,
			revision = put_revision, coalesce(deleted_at, updated_at), deleted_at is not null from lookup_schedules($1, $2)`, after, perPage)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(page) < perPage {
			return all, nil
		}
	}
}

func scanHeld(row pgx.CollectableRow) (held, error) {
	var h held
	err := row.Scan(&h.tenantID, &h.ID, &h.Expression, &h.TimeZone, &h.StartAt, &h.EndAt, &h.Enabled, &h.Missed, &h.since, &h.LastOccurrence, &h.Settled, &h.changedAt, &h.deleted)
	return h, err
}
