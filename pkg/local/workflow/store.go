package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/workflow"
	"github.com/agentplatform/agentplatform/pkg/workflow/asl"
)

// held is a branch that this process works on.
type held struct {
	run    *facts
	id     int64
	parent int64 // 0: the run's own
	claim  int64
	place  place
	came   event // the answer to its token, or its branch's failure
	broken error // why what is kept of it cannot be read
}

// errUnreadable is what no other attempt makes better: the run ends with it.
var errUnreadable = errors.New("what is kept of the run cannot be read")

// facts are a run's that stay the same.
type facts struct {
	id         int64
	machine    string
	name       string
	definition int64
	input      string
	started    time.Time
	data       *value // its input, once somebody has asked
}

const branchColumns = `b.run, b.id, coalesce(b.parent, 0), b.claim, b.phase, b.state, b.input, b.visit, coalesce(b.entered, 'epoch'), b.retries, b.attempt, b.deadline, b.beat,
	(extract(epoch from b.pulse) * 1000000)::bigint, b.item, b.answer, b.error, b.cause, b.total, b.made, b.ended, b.size`

// scanBranch reads branchColumns, and what follows them.
func scanBranch(rows pgx.Rows, after ...any) (h *held, run int64, err error) {
	h = &held{}
	p := &h.place
	var deadline, beat *time.Time
	var pulse *int64
	var input string
	var one, answer, code, cause *string
	err = rows.Scan(append([]any{&run, &h.id, &h.parent, &h.claim, &p.phase, &p.state, &input, &p.visit, &p.entered, &p.retries, &p.attempt, &deadline, &beat,
		&pulse, &one, &answer, &code, &cause, &p.total, &p.made, &p.ended, &p.size}, after...)...)
	if err != nil {
		return nil, 0, err
	}
	p.deadline, p.beat = zeroOr(deadline), zeroOr(beat)
	if pulse != nil {
		p.pulse = time.Duration(*pulse) * time.Microsecond
	}
	if code != nil {
		h.came.failure = &asl.Failure{Error: *code, Cause: *cause}
	}
	if h.broken = h.read(input, one, answer); h.broken != nil {
		h.broken = fmt.Errorf("%w: %w", errUnreadable, h.broken)
	}
	return h, run, nil
}

func zeroOr(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// read decodes what is kept as text.
func (h *held) read(input string, one, answer *string) (err error) {
	if h.place.input, err = textOf(input); err != nil {
		return err
	}
	if one != nil {
		v, err := textOf(*one)
		if err != nil {
			return err
		}
		pair := v.data.([]any) // as item's text has it
		index, err := pair[0].(json.Number).Int64()
		if err != nil {
			return err
		}
		h.place.item = &item{int(index), pair[1]}
	}
	if answer != nil {
		v, err := textOf(*answer)
		if err != nil {
			return err
		}
		h.came.result = &v
	}
	return nil
}

// Rows that another engine claims at this moment are skipped. A claim that is lost in a power cut is made again, so its commit does not wait for the disk.
const claim = `with due as (
		select run, id from local_workflow.branches where holder is null and wake <= $2 and (select set_config('synchronous_commit', 'off', true)) = 'off'
		order by wake limit $3 for update skip locked)
	update local_workflow.branches b set holder = $1, claim = b.claim + 1, wake = null from due, local_workflow.runs r
	where b.run = due.run and b.id = due.id and r.id = due.run
	returning ` + branchColumns + `, r.machine, r.name, r.definition, r.input, r.started`

// claim takes up to n branches that want to be looked at.
func (r *run) claim(ctx context.Context, n int) (all []*held, err error) {
	err = r.ask(ctx, claim, []any{r.holder, r.now(), n}, func(rows pgx.Rows) error {
		f := &facts{}
		h, run, err := scanBranch(rows, &f.machine, &f.name, &f.definition, &f.input, &f.started)
		if err != nil {
			return err
		}
		f.id, h.run = run, f
		all = append(all, h)
		return nil
	})
	return all, err
}

// next is when a branch, and when a run's time, wants to be looked at; zero: none does.
func (r *run) next(ctx context.Context) (wake, until time.Time, err error) {
	err = r.ask(ctx, `select (select min(wake) from local_workflow.branches where holder is null), (select min(until) from local_workflow.runs)`, nil, func(rows pgx.Rows) error {
		var a, b *time.Time
		if err := rows.Scan(&a, &b); err != nil {
			return err
		}
		if a != nil {
			wake = *a
		}
		if b != nil {
			until = *b
		}
		return nil
	})
	return wake, until, err
}

// load reads a branch that settle has handed over; nil: it is somebody else's already.
func (r *run) load(ctx context.Context, f *facts, id, claim int64) (h *held, err error) {
	err = r.ask(ctx, `select `+branchColumns+` from local_workflow.branches b where run = $1 and id = $2 and claim = $3`, []any{f.id, id, claim}, func(rows pgx.Rows) (err error) {
		h, _, err = scanBranch(rows)
		return err
	})
	if h != nil {
		h.run = f
	}
	return h, err
}

// outputs are those of a branch's branches, which are all over.
func (r *run) outputs(ctx context.Context, h *held) (all []any, err error) {
	all = []any{}
	err = r.ask(ctx, `select input from local_workflow.branches where run = $1 and parent = $2 and phase = 'over' order by place`, []any{h.run.id, h.id}, func(rows pgx.Rows) error {
		var kept string
		if err := rows.Scan(&kept); err != nil {
			return err
		}
		v, err := textOf(kept)
		if err != nil {
			return fmt.Errorf("%w: %w", errUnreadable, err)
		}
		all = append(all, v.data)
		return nil
	})
	return all, err
}

// settled is what came of writing a transition.
type settled struct {
	outcome string // see settle in tables/1.sql
	base    int
	next    int64
	claim   int64
}

const settle = `select outcome, coalesce(base, 0), coalesce(next, 0), coalesce(next_claim, 0) from local_workflow.settle($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15,
	$16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34)`

// settle writes a transition. stays: whoever made it goes on with the branch.
func (r *run) settle(ctx context.Context, h *held, m *move, stays bool) (s settled, err error) {
	n := len(m.steps)
	kinds, states, types, errs, causes := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	visits, data := make([]int, n), make([]*string, n)
	for i := range m.steps {
		one := &m.steps[i]
		kinds[i], states[i], types[i], visits[i], errs[i], causes[i] = string(one.kind), one.state.Name, string(one.state.Type), one.visit, one.Error, one.Cause
		if one.kind == workflow.StateEntered || one.kind == workflow.StateExited {
			data[i] = &one.data
		}
	}
	var starts, inputs []string
	var items []*string
	for _, c := range m.children {
		starts, inputs, items = append(starts, c.start), append(inputs, c.input.text), append(items, c.item.text())
	}
	var input, code, cause *string
	if m.input.text != h.place.input.text {
		input = &m.input.text
	}
	if m.phase == over {
		input = &m.input.text
	}
	if m.phase == failed {
		code, cause = &m.failure.Error, &m.failure.Cause
	}
	var total *int
	if m.fresh {
		total = &m.total
	}
	retries := m.retries
	if retries == nil {
		retries = []int{}
	}
	err = r.ask(ctx, settle, []any{h.run.id, h.id, h.claim, r.holder, m.now, r.config.Ended != nil, MaxSteps, r.room, int64(workflow.MaxData),
		kinds, states, types, visits, data, errs, causes,
		string(m.phase), m.state, input, m.visit, m.entered, retries, m.attempt, instant(m.deadline), instant(m.beat), pause(m.pulse), instant(m.wake), stays, code, cause,
		total, starts, inputs, items}, func(rows pgx.Rows) error {
		return rows.Scan(&s.outcome, &s.base, &s.next, &s.claim)
	})
	return s, err
}

func (i *item) text() *string {
	if i == nil {
		return nil
	}
	kept := string(asl.Encode([]any{asl.Number(i.Index), i.Value}))
	return &kept
}

func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	if t.After(latest) {
		t = latest
	}
	return &t
}

// latest is within what the database has as a time.
var latest = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

func pause(d time.Duration) *time.Duration {
	if d == 0 {
		return nil
	}
	return &d
}

// await lets go of a branch whose task's function has handed out the token.
func (r *run) await(ctx context.Context, h *held) error {
	return r.ask(ctx, `select local_workflow.await($1, $2, $3)`, []any{h.run.id, h.id, h.claim}, ignored)
}

func ignored(pgx.Rows) error { return nil }

// giveUp ends a run that cannot be gone on with.
func (r *run) giveUp(ctx context.Context, h *held, cause string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	err := r.ask(ctx, `select local_workflow.finish($1, $2, $3, 'FAILED', null, $4, $5)`, []any{h.run.id, r.now(), r.config.Ended != nil, asl.ErrorRuntime, cause}, ignored)
	signal(r.ended)
	return err
}
