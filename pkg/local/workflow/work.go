package workflow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/agentplatform/agentplatform/pkg/workflow/asl"
)

// work goes on with a branch, and with those that come of it, until nothing is to be done here. When the engine stops, what has been answered is
// written, and the rest is left for whoever runs next.
func (r *run) work(ctx context.Context, h *held) {
	for h != nil {
		next, err := r.transition(ctx, h)
		if next != nil && next.id != h.id {
			r.enter(next.id)
		}
		if next == nil || next.id != h.id {
			r.left(h.id)
		}
		if err != nil {
			r.failed(ctx, h, err)
		}
		h = next
	}
}

// failed ends a run with which it will never be otherwise. Else whether it was written or not, what is in the database counts, and is gone on with.
func (r *run) failed(ctx context.Context, h *held, err error) {
	refused := (*pgconn.PgError)(nil)
	if errors.Is(err, errUnreadable) || errors.As(err, &refused) && strings.HasPrefix(refused.Code, "22") { // data that a text cannot hold
		slog.ErrorContext(ctx, "a run fails: its data cannot be read or kept", "machine", h.run.machine, "run", h.run.name, "error", err)
		if r.giveUp(ctx, h, "the run's data cannot be read or kept") == nil {
			return
		}
	}
	if ctx.Err() == nil {
		slog.WarnContext(ctx, "a run's transition could not be written and is made again", "machine", h.run.machine, "run", h.run.name, "error", err)
	}
	signal(r.strays)
}

// transition makes one, and the call that it leads to. It says what to go on with here: nil is nothing.
func (r *run) transition(ctx context.Context, h *held) (next *held, err error) {
	if ctx.Err() != nil && h.came.result == nil && h.came.failure == nil {
		return nil, nil //nolint:nilnil // it is for the next Run
	}
	if h.broken != nil {
		return nil, h.broken
	}
	m, err := r.move(ctx, h)
	if err != nil {
		return nil, err
	}
	if len(m.steps) > 0 || m.call == nil || m.deadline != h.place.deadline || m.beat != h.place.beat { // else it is a call that is made again, and has no end
		if next, err = r.write(ctx, h, m); err != nil || m.call == nil || next == nil {
			return next, err
		}
	}
	return r.call(ctx, h, m)
}

// move works out a branch's next transition.
func (r *run) move(ctx context.Context, h *held) (m *move, err error) {
	s, err := r.scene(ctx, h)
	if err != nil {
		return nil, err
	}
	e := h.came
	if h.place.phase == parted && e.failure == nil && h.place.ended == h.place.total {
		if e.outputs, err = r.outputs(ctx, h); err != nil {
			return nil, err
		}
	}
	defer func() { // a mistake in here is one run's end, not every run's
		if p := recover(); p != nil {
			slog.ErrorContext(ctx, "a run fails by a mistake of the engine's", "machine", h.run.machine, "run", h.run.name, "panic", p, "stack", string(debug.Stack()))
			place := h.place
			place.phase, place.failure = failed, asl.Failure{Error: asl.ErrorRuntime, Cause: "the engine made a mistake"}
			m, err = &move{scene: s, place: place, now: r.now()}, nil
		}
	}()
	return s.advance(h.place, e, r.now()), nil
}

// scene is what stays the same for a branch: all but the token is its run's.
func (r *run) scene(ctx context.Context, h *held) (*scene, error) {
	p, err := r.program(ctx, h.run.definition)
	if err != nil {
		return nil, err
	}
	return &scene{program: p, context: func() (asl.Context, error) { return r.object(p, h.run) }, token: func(attempt int) string { return r.token(h.run.id, h.id, attempt) },
		call: r.plan}, nil
}

// object is the part of the context object that is the run's; nil if its definition does not look into it.
func (r *run) object(p *program, f *facts) (asl.Context, error) {
	if !p.looks {
		return nil, nil //nolint:nilnil // as the comment says
	}
	if f.data == nil {
		v, err := textOf(f.input)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errUnreadable, err)
		}
		f.data = &v
	}
	return asl.Context{
		"Execution": map[string]any{"Id": r.arn("execution", f.machine) + ":" + f.name, "Input": f.data.data, "Name": f.name, "StartTime": asl.Time(f.started),
			"RoleArn": "arn:aws:iam::" + r.config.Account + ":role/" + r.config.Prefix + "workflow"},
		"StateMachine": map[string]any{"Id": r.arn("stateMachine", f.machine), "Name": r.config.Prefix + f.machine},
	}, nil
}

// write writes a transition, and says what to go on with here: the branch itself, one of its, the one it is part of, or nothing.
func (r *run) write(ctx context.Context, h *held, m *move) (*held, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	point := fmt.Sprintf("%s %s", m.point(), m.phase)
	r.signal(point + " before")
	s, err := r.settle(ctx, h, m, m.phase == entering || m.phase == calling)
	if err != nil {
		return nil, err
	}
	r.signal(point + " after")
	r.wakes(m.wake)
	if len(m.children) > 1 {
		r.Look() // the others are for other workers
	}
	switch {
	case s.outcome == "ended":
		signal(r.ended)
		return nil, nil //nolint:nilnil // nothing is to be gone on with
	case s.outcome != "held":
		return nil, nil //nolint:nilnil // likewise
	case s.next == h.id:
		if m.visit < 0 {
			m.visit = s.base - m.visit
		}
		h.claim, h.place, h.came = s.claim, m.place, event{}
		return h, nil
	case len(m.children) > 0:
		c := m.children[0]
		return &held{run: h.run, id: s.next, parent: h.id, claim: s.claim, place: place{phase: entering, state: c.start, input: c.input, item: c.item}}, nil
	}
	return r.load(ctx, h.run, s.next, s.claim)
}

// point is what kind of state a transition has come to.
func (m *move) point() asl.Type {
	if s := m.at(); s != nil {
		return s.Type
	}
	return ""
}

// call makes a task's call, and says whether to go on with its answer.
func (r *run) call(ctx context.Context, h *held, m *move) (*held, error) {
	came, comes := r.do(ctx, m.call, m.deadline, r.now())
	r.signal("Task called")
	switch {
	case comes == answered:
		h.came = came
		return h, nil
	case comes == givenUp:
		return nil, nil //nolint:nilnil // it is for the next Run
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	if err := r.await(last, h); err != nil {
		return nil, err
	}
	r.wakes(earlier(m.deadline, m.beat))
	return nil, nil //nolint:nilnil // it waits for the token's answer
}
