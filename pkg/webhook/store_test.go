package webhook_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

// patch is what PATCH does.
func (w *world) patch(id, patch string) error {
	_, err := w.update(id, func(now webhook.Webhook) (s webhook.Settings, err error) {
		merged, err := now.Merged([]byte(patch))
		if err != nil {
			return s, err
		}
		d := json.NewDecoder(bytes.NewReader(merged))
		d.UseNumber()
		return s, d.Decode(&s)
	})
	return err
}

func (w *world) update(id string, change func(webhook.Webhook) (webhook.Settings, error)) (changed webhook.Webhook, err error) {
	err = w.db.App.InTenant(w.t.Context(), w.TenantID, func(tx pgx.Tx) (err error) {
		changed, err = webhook.Update(w.t.Context(), tx, id, change)
		return err
	})
	return changed, err
}

func (w *world) delete(id string, check func(webhook.Webhook) error) error {
	return w.db.App.InTenant(w.t.Context(), w.TenantID, func(tx pgx.Tx) error { return webhook.Delete(w.t.Context(), tx, id, check) })
}

func anyVersion(webhook.Webhook) error { return nil }

func TestCreate(t *testing.T) {
	w := newWorld(t)
	before := ident.Now()
	made := w.create(func(s *webhook.Settings) {
		s.Config = map[string]any{"id": json.Number("12345678901234567890"), "rate": json.Number("1.10"), "<&>": []any{"\u2028", nil, map[string]any{}}}
	})
	require.Regexp(t, `^[A-Za-z0-9]{32}$`, made.Token)
	require.True(t, ident.Valid(made.ID))
	require.Equal(t, w.TenantID, made.TenantID)
	require.Equal(t, 1, made.Version)
	require.False(t, made.CreatedAt.Before(before.Time))
	require.Equal(t, made.CreatedAt, made.UpdatedAt)
	require.Equal(t, webhook.Agent, made.TargetType)
	require.True(t, *made.Enabled)
	require.Equal(t, 10, *made.RateLimit)
	require.Zero(t, made.InvocationCount)
	require.Nil(t, made.LastInvokedAt)

	got := w.get(made.ID)
	require.Equal(t, strings.Repeat("*", 28)+made.Token[28:], got.Token)
	made.Token = got.Token
	require.Equal(t, made, got, "kept as it was given, numbers as they are written")
	require.Equal(t, made, w.get(strings.ToUpper(made.ID)))
	rendered, err := json.Marshal(got)
	require.NoError(t, err)
	require.NotContains(t, string(rendered), "hash")
}

func TestCreateRefuses(t *testing.T) {
	w := newWorld(t)
	other := w.neighbour("globex")
	archived := ident.New()
	w.exec(`insert into agents (tenant_id, id, name, status, template_id) values ($1, $2, 'Gone', 'archived', $3)`, w.TenantID, archived, w.TemplateID)
	nested := map[string]any{}
	for range 100 {
		nested = map[string]any{"a": nested}
	}
	for _, c := range []struct {
		text   string
		change func(*webhook.Settings)
	}{
		{"name must not be empty", func(s *webhook.Settings) { s.Name = " " }},
		{"name is longer than 200 bytes", func(s *webhook.Settings) { s.Name = strings.Repeat("x", 201) }},
		{"name must be UTF-8 text without NUL", func(s *webhook.Settings) { s.Name = "a\x00" }},
		{"description is longer", func(s *webhook.Settings) { s.Description = new(strings.Repeat("x", 4001)) }},
		{"prompt must not be empty", func(s *webhook.Settings) { s.Prompt = new("") }},
		{"prompt is longer", func(s *webhook.Settings) { s.Prompt = new(strings.Repeat("x", 64<<10+1)) }},
		{"prompt holds {{oops}}", func(s *webhook.Settings) { s.Prompt = new("{{oops}}") }},
		{"rate_limit must be from 1 to 100000", func(s *webhook.Settings) { s.RateLimit = new(0) }},
		{"rate_limit must be from 1 to 100000 calls a minute", func(s *webhook.Settings) { s.RateLimit = new(100_001) }},
		{"config must be a JSON object of at most 16384 bytes", func(s *webhook.Settings) { s.Config = map[string]any{"a": strings.Repeat("x", 16<<10)} }},
		{"nested at most 100 levels deep", func(s *webhook.Settings) { s.Config = nested }},
		{"routine_id is required", func(s *webhook.Settings) { s.TargetType = webhook.Routine }},
		{"config.provider is required", func(s *webhook.Settings) { s.TargetType = webhook.Task }},
		{"target_type must be agent, routine or task", func(s *webhook.Settings) { s.TargetType = "agents" }},
		{"agent_id is required", func(s *webhook.Settings) { s.AgentID = nil }},
		{"agent_id names no agent of the tenant", func(s *webhook.Settings) { s.AgentID = new("Ada") }},
		{"agent_id names no agent of the tenant", func(s *webhook.Settings) { s.AgentID = new(ident.New()) }},
		{"agent_id names no agent of the tenant", func(s *webhook.Settings) { s.AgentID = &other.AgentID }},
		{"the agent is archived", func(s *webhook.Settings) { s.AgentID = &archived }},
		{"routine_id is for target_type routine", func(s *webhook.Settings) { s.RoutineID = new(ident.New()) }},
	} {
		s := webhook.Settings{Name: "Orders", AgentID: &w.AgentID}
		c.change(&s)
		_, err := w.try(s)
		is(t, err, fault.ValidationError, c.text)
	}
	require.Zero(t, query[int](w, `select count(*) from webhooks`))
	w.exec(`update agents set status = 'suspended' where id = $1`, w.AgentID)
	w.create() // it may be active again when a call comes
}

func TestList(t *testing.T) {
	w := newWorld(t)
	w.neighbour("globex").create(func(s *webhook.Settings) { s.Name = "a" })
	var want []webhook.Cursor
	for _, name := range []string{"b", "a", "é", "a", "A", "z", "a", "a b", "B"} {
		want = append(want, w.create(func(s *webhook.Settings) { s.Name = name }).Cursor())
	}
	slices.SortFunc(want, func(a, b webhook.Cursor) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	for limit := 1; limit <= 10; limit++ {
		var got []webhook.Cursor
		for after := (*webhook.Cursor)(nil); ; {
			page, err := webhook.List(t.Context(), w.db.App.In(w.TenantID), after, limit)
			require.NoError(t, err)
			require.LessOrEqual(t, len(page), limit)
			if len(page) == 0 {
				break
			}
			for _, hook := range page {
				got = append(got, hook.Cursor())
				require.Regexp(t, `^\*{28}`, hook.Token)
			}
			after = new(page[len(page)-1].Cursor())
		}
		require.Equal(t, want, got)
	}
}

func TestOthersWebhooksAreMissing(t *testing.T) {
	w := newWorld(t)
	mine, foreign := w.create(), w.neighbour("globex").create()
	for _, id := range []string{foreign.ID, ident.New(), "", "Orders", "' or true --"} {
		_, err := webhook.Get(t.Context(), w.db.App.In(w.TenantID), id)
		is(t, err, fault.NotFound, "webhook not found")
		_, err = w.update(id, func(webhook.Webhook) (webhook.Settings, error) { panic("found") })
		is(t, err, fault.NotFound, "webhook not found")
		is(t, w.delete(id, func(webhook.Webhook) error { panic("found") }), fault.NotFound, "webhook not found")
	}
	require.Equal(t, 2, query[int](w, `select count(*) from webhooks where id in ($1, $2)`, mine.ID, foreign.ID))
}

func TestUpdate(t *testing.T) {
	w := newWorld(t)
	made := w.create(func(s *webhook.Settings) { s.Config = map[string]any{"id": json.Number("12345678901234567890")} })
	w.start(made.ID, "", `{"message":"counted, which is no change"}`)
	was := w.get(made.ID)

	unchanged, err := w.update(made.ID, func(now webhook.Webhook) (webhook.Settings, error) {
		require.Equal(t, was, now)
		return now.Settings, nil
	})
	require.NoError(t, err)
	require.Equal(t, was, unchanged)
	for _, patch := range []string{`{}`, `{"name":"Orders"}`, `{"description":null,"rate_limit":10,"enabled":null,"target_type":"agent","config":{}}`} {
		require.NoError(t, w.patch(made.ID, patch))
		require.Equal(t, was, w.get(made.ID), patch)
	}

	changed, err := w.update(made.ID, func(now webhook.Webhook) (webhook.Settings, error) {
		now.Name, now.Enabled = "Returns", new(false)
		return now.Settings, nil
	})
	require.NoError(t, err)
	require.Equal(t, changed, w.get(made.ID))
	require.Equal(t, 2, changed.Version)
	require.True(t, changed.UpdatedAt.After(was.UpdatedAt.Time))
	changed.Version, changed.UpdatedAt, changed.Name, changed.Enabled = was.Version, was.UpdatedAt, was.Name, was.Enabled
	require.Equal(t, was, changed, "the rest is as it was, the counters too")

	no := errors.New("not this version")
	_, err = w.update(made.ID, func(webhook.Webhook) (webhook.Settings, error) { return webhook.Settings{}, no })
	require.ErrorIs(t, err, no)
	is(t, w.patch(made.ID, `{"rate_limit":0}`), fault.ValidationError, "rate_limit")
	is(t, w.patch(made.ID, fmt.Sprintf(`{"agent_id":%q}`, ident.New())), fault.ValidationError, "agent_id names no agent")
	require.Equal(t, 2, w.get(made.ID).Version)
	_, err = webhook.Enter(t.Context(), w.db.App, made.ID, made.Token)
	is(t, err, fault.Forbidden, "disabled")
}

// A webhook whose agent is archived can still be disabled, renamed and given to another agent.
func TestUpdateOfAnArchivedAgentsWebhook(t *testing.T) {
	w := newWorld(t)
	made := w.create()
	next, gone := ident.New(), ident.New()
	for id, status := range map[string]string{next: "active", gone: "archived"} {
		w.exec(`insert into agents (tenant_id, id, name, status, template_id) values ($1, $2, 'Grace', $3, $4)`, w.TenantID, id, status, w.TemplateID)
	}
	w.exec(`update agents set status = 'archived' where id = $1`, w.AgentID)
	require.NoError(t, w.patch(made.ID, `{"enabled":false}`))
	is(t, w.patch(made.ID, fmt.Sprintf(`{"agent_id":%q}`, gone)), fault.ValidationError, "the agent is archived")
	require.NoError(t, w.patch(made.ID, fmt.Sprintf(`{"agent_id":%q}`, next)))
	is(t, w.patch(made.ID, fmt.Sprintf(`{"agent_id":%q}`, w.AgentID)), fault.ValidationError, "the agent is archived")
	require.Equal(t, 3, w.get(made.ID).Version)
}

func TestConcurrentUpdates(t *testing.T) {
	w := newWorld(t)
	made := w.create()
	w.together(12, func(i int) (webhook.Invoked, error) {
		return webhook.Invoked{}, w.patch(made.ID, fmt.Sprintf(`{"config":{"n%d":true}}`, i))
	})
	got := w.get(made.ID)
	require.Len(t, got.Config, 12)
	require.Equal(t, 13, got.Version)
}

func TestDelete(t *testing.T) {
	w := newWorld(t)
	made, sibling := w.create(), w.create()
	run := w.start(made.ID, "key", `{"message":"Hello"}`)
	w.start(sibling.ID, "key", `{"message":"Hello"}`)
	no := errors.New("not this version")
	require.ErrorIs(t, w.delete(made.ID, func(now webhook.Webhook) error {
		require.EqualValues(t, 1, now.InvocationCount)
		return no
	}), no)
	w.get(made.ID)

	require.NoError(t, w.delete(made.ID, anyVersion))
	_, err := webhook.Get(t.Context(), w.db.App.In(w.TenantID), made.ID)
	is(t, err, fault.NotFound, "webhook not found")
	is(t, w.delete(made.ID, anyVersion), fault.NotFound, "webhook not found")
	_, err = webhook.Enter(t.Context(), w.db.App, made.ID, made.Token)
	is(t, err, fault.Unauthorized, "no webhook has this id and token")
	_, err = w.invoke(made.ID, "key", `{"message":"Hello"}`)
	is(t, err, fault.NotFound, "webhook not found")
	require.Equal(t, rows{Runs: 2, Threads: 2, Messages: 2, Keys: 2, Counted: 1}, w.rows())
	require.Equal(t, run.RunID, w.runs(made.ID)[0].ID)
	require.Equal(t, run.ThreadID, w.turn(run.RunID).ThreadID)
}
