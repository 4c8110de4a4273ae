package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/turn"
	"github.com/agentplatform/agentplatform/pkg/agentcore"
	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/invoke"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/sandbox"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/turn"
	"github.com/agentplatform/agentplatform/schema"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// site is a tenant, and dispatch-turn with what it finds around it: a model that answers at once, subscribers and an invoke queue that
// nobody looks at, and the runtimes.
type site struct {
	pgtest.World
	t        *testing.T
	db       *pgtest.DB
	runtimes agentcore.Runtimes
	invoked  []string
}

func newSite(t *testing.T, runtimes agentcore.Runtimes) *site {
	db := pgtest.New(t)
	return &site{World: db.World(t, "acme"), t: t, db: db, runtimes: runtimes}
}

// ask queues a turn of an agent whose template selects that runtime.
func (s *site) ask(selector string) (th thread.Thread, turnID string) {
	s.t.Helper()
	require.NoError(s.t, s.db.App.InTenant(s.t.Context(), s.TenantID, func(tx pgx.Tx) (err error) {
		if _, err = tx.Exec(s.t.Context(), `update agent_templates set runtime = $1`, selector); err != nil {
			return err
		}
		if th, err = thread.Create(s.t.Context(), tx, s.TenantID, thread.New{}); err != nil {
			return err
		}
		asked, err := turn.Request(s.t.Context(), tx, s.TenantID, turn.Ask{ThreadID: th.ID, Body: "Hello", OnBusy: turn.Enqueue, UserID: s.UserID})
		turnID = asked.TurnID
		return err
	}))
	return th, turnID
}

// dispatch invokes the function as its queue does.
func (s *site) dispatch(turnID string) error {
	s.t.Helper()
	rows, err := manifest.Parse(schema.Routes)
	require.NoError(s.t, err)
	row, ok := rows.Row("dispatch-turn")
	require.True(s.t, ok)
	ports := &handler.Ports{DB: func() *postgres.DB { return s.db.App }, Model: func() model.Model { return s }, Publish: func() publish.Publisher { return s },
		Guardrail: func() guardrail.Guard { return nil }, Sandbox: func() sandbox.Sandbox { return nil }, ToolSecrets: func() secret.Store { return nil },
		Invoke: func() invoke.Invoker { return s }, Call: func() invoke.Caller { return nil }, Runtimes: func() agentcore.Runtimes { return s.runtimes }}
	payload, err := json.Marshal(turn.Dispatch{TenantID: s.TenantID, TurnID: turnID})
	require.NoError(s.t, err)
	_, err = functions.DispatchTurn(handler.NewEnv(row, ports)).Invoke(s.t.Context(), payload)
	return err
}

func (s *site) turn(id string) turn.Turn {
	s.t.Helper()
	got, err := turn.Get(s.t.Context(), s.db.App.In(s.TenantID), id)
	require.NoError(s.t, err)
	return got
}

func (s *site) Converse(context.Context, model.Request, model.Stream) (model.Response, error) {
	return model.Response{Blocks: []model.Block{{Text: "Done."}}, StopReason: model.StopEndTurn}, nil
}

func (s *site) Publish(context.Context, ...publish.Event) error { return nil }

func (s *site) Invoke(_ context.Context, function string, _ any) error {
	s.invoked = append(s.invoked, function)
	return nil
}

// runtime remembers what it was asked to start.
type runtime struct {
	fail     error
	sessions []string
	payloads []string
}

func (r *runtime) Start(_ context.Context, session string, dispatch []byte) error {
	r.sessions, r.payloads = append(r.sessions, session), append(r.payloads, string(dispatch))
	return r.fail
}

// Without runtimes, and for the default selector without one of its own, the turn runs in the function.
func TestTheDefaultNeedsNoRuntime(t *testing.T) {
	other := &runtime{}
	for _, runtimes := range []agentcore.Runtimes{nil, {"large": other}} {
		s := newSite(t, runtimes)
		_, id := s.ask("default")
		require.NoError(t, s.dispatch(id))
		require.Equal(t, turn.Succeeded, s.turn(id).Status)
		require.NoError(t, s.dispatch(id), "a second dispatch finds nothing to do")
	}
	require.Empty(t, other.sessions)
}

// The runtime of the template's selector gets the turn, in the session of its thread; the function runs nothing.
func TestTheSelectorChoosesTheRuntime(t *testing.T) {
	usual, large := &runtime{}, &runtime{}
	s := newSite(t, agentcore.Runtimes{"default": usual, "large": large})
	th, id := s.ask("large")
	require.NoError(t, s.dispatch(id))
	require.Equal(t, []string{th.UUID}, large.sessions)
	require.GreaterOrEqual(t, len(th.UUID), 33, "AgentCore's least")
	require.JSONEq(t, `{"tenantId":"`+s.TenantID+`","turnId":"`+id+`"}`, large.payloads[0])
	require.Equal(t, turn.Queued, s.turn(id).Status)

	th, id = s.ask("default")
	require.NoError(t, s.dispatch(id))
	require.Equal(t, []string{th.UUID}, usual.sessions)
	require.Len(t, large.sessions, 1)
	require.NoError(t, s.dispatch("01900000-0000-7000-8000-000000000001"), "no such turn")
	require.Len(t, usual.sessions, 1)
}

// A selector that means nothing here fails the turn: it does not run in another runtime than was asked for.
func TestAnUnknownSelectorFailsTheTurn(t *testing.T) {
	for _, runtimes := range []agentcore.Runtimes{nil, {"default": &runtime{}}} {
		s := newSite(t, runtimes)
		_, id := s.ask("large")
		require.NoError(t, s.dispatch(id))
		require.Equal(t, turn.Failed, s.turn(id).Status)
		require.Equal(t, `the runtime "large" is not part of this deployment; name it in AGENT_RUNTIMES, or another one in the agent or its template`, *s.turn(id).Error)
	}
}

// A runtime that cannot be had leaves the turn to the reaper.
func TestARuntimeThatFails(t *testing.T) {
	for _, why := range []error{errors.New("ThrottlingException"), &agentcore.Refused{Reason: agentcore.Busy}} {
		broken := &runtime{fail: why}
		s := newSite(t, agentcore.Runtimes{"default": broken})
		_, id := s.ask("default")
		require.ErrorIs(t, s.dispatch(id), why)
		require.Equal(t, turn.Queued, s.turn(id).Status)
		_, err := s.db.Superuser(t).Exec(t.Context(), `update thread_turns set lease_until = clock_timestamp() - interval '1 second'`) // its grace is over
		require.NoError(t, err)
		broken.fail = nil
		found, err := turn.Reap(t.Context(), s.db.App, func(_ context.Context, _, turnID string) error { return s.dispatch(turnID) })
		require.NoError(t, err)
		require.Equal(t, 1, found)
		require.Len(t, broken.sessions, 2)
	}
}
