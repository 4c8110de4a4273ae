package turn_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/budget"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/retention"
	"github.com/agentplatform/agentplatform/pkg/tool"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

const stepsKept = 90 * 24 * time.Hour // by default

// pruneAfter prunes as if so much time had passed.
func (w *world) pruneAfter(d time.Duration) retention.Pruned {
	w.t.Helper()
	p := retention.Pruner{DB: w.db.App, Now: func() time.Time { return time.Now().Add(d) }}
	done, err := p.Run(w.t.Context())
	require.NoError(w.t, err)
	return done
}

// hourLater is what the functions that run on time have done an hour later: events are pruned, usage is added up.
func (w *world) hourLater() {
	w.t.Helper()
	_, err := w.db.Superuser(w.t).Exec(w.t.Context(), `update thread_events set created_at = created_at - interval '61 minutes', undelivered = false;
		update thread_turns set finished_at = finished_at - interval '61 minutes'; update thread_sequences set prune_at = now() - interval '1 second' where prune_at is not null`)
	require.NoError(w.t, err)
	_, err = notify.Prune(w.t.Context(), w.db.App)
	require.NoError(w.t, err)
	require.NoError(w.t, budget.Meter(w.t.Context(), w.db.App))
}

// rows are the rows of each table that has some.
func (w *world) rows() map[string]int {
	w.t.Helper()
	rows, err := w.db.Superuser(w.t).Query(w.t.Context(), `select relname::text, (xpath('/row/n/text()', query_to_xml('select count(*) as n from ' || quote_ident(relname), false, true, '')))[1]::text::integer
		from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`)
	require.NoError(w.t, err)
	all := map[string]int{}
	var name string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&name, &n}, func() error {
		all[name] = n
		return nil
	})
	require.NoError(w.t, err)
	return all
}

// more is what of now is beyond before.
func more(before, now map[string]int) map[string]int {
	grown := map[string]int{}
	for name, n := range now {
		if n != before[name] {
			grown[name] = n - before[name]
		}
	}
	return grown
}

// What a turn leaves, to the row: a table that begins to grow with turns fails this test. Three tool calls are four more steps and nothing else.
func TestWhatATurnLeaves(t *testing.T) {
	w := newWorld(t, script(func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		if last(r) == "Look thrice" {
			return uses(s, "", "read_thread", `{"threadId":"CHAT-1"}`, "read_thread", `{"threadId":"CHAT-1"}`, "read_thread", `{"threadId":"CHAT-1"}`), nil
		}
		return say(s, "Well."), nil
	}))
	th := w.open()
	w.run(w.ask(th.ID, "Hello").TurnID)
	w.hourLater()
	for body, steps := range map[string]int{"Hello again": 1, "Look thrice": 5} {
		before := w.rows()
		asked := w.ask(th.ID, body)
		w.run(asked.TurnID)
		require.Equal(t, turn.Succeeded, w.turn(asked.TurnID).Status)
		grown := more(before, w.rows())
		require.LessOrEqual(t, grown["thread_events"], 15, "until an hour later")
		delete(grown, "thread_events")
		require.Equal(t, map[string]int{"messages": 2, "thread_turns": 1, "turn_steps": steps, "usage_unmetered": 1}, grown, body)
		w.hourLater()
		require.Equal(t, map[string]int{"messages": 2, "thread_turns": 1, "turn_steps": steps}, more(before, w.rows()), body)
		w.pruneAfter(stepsKept + time.Minute)
		grown = more(before, w.rows())
		delete(grown, "turn_steps") // less than before: the earlier turns' are gone too
		delete(grown, "prompt_texts")
		require.Equal(t, map[string]int{"messages": 2, "thread_turns": 1}, grown, body)
		require.Zero(t, w.rows()["turn_steps"])
	}
}

// A turn that is pruned says so, keeps its record, and can still be repeated; those that are kept are explained as before.
func TestAPrunedTurn(t *testing.T) {
	fail := true
	w := newWorld(t, script(func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		switch {
		case last(r) == "Ask me":
			return uses(s, "", "ask_user", `{"question":"Which?"}`), nil
		case last(r) == "Look" && len(r.Messages) < 4:
			return uses(s, "Let me look.", "read_thread", `{"threadId":"CHAT-1"}`), nil
		case last(r) == "Break" && fail:
			return model.Response{}, &model.Error{Message: "no"}
		}
		return say(s, "Well."), nil
	}))
	w.runner.Tools["ask_user"] = tool.AskUser()
	w.grant("read_thread,ask_user", "")
	waiting := w.open()
	waits := w.ask(waiting.ID, "Ask me").TurnID
	w.run(waits)
	require.Equal(t, turn.Waiting, w.turn(waits).Status)
	_, err := w.db.Superuser(t).Exec(t.Context(), `update agents set system_prompt = 'Answer at length.'`)
	require.NoError(t, err)
	th := w.open()
	first := w.ask(th.ID, "Look").TurnID
	w.run(first)
	broken := w.ask(th.ID, "Break").TurnID
	w.run(broken)
	before := []turn.Turn{w.turn(first), w.turn(broken)}
	require.Equal(t, []turn.Status{turn.Succeeded, turn.Failed}, []turn.Status{before[0].Status, before[1].Status})
	require.NotNil(t, before[0].ToolOutcomes[0].Output)
	said := w.messages(th)

	require.Zero(t, w.pruneAfter(stepsKept-time.Hour))
	require.Equal(t, retention.Pruned{Turns: 2, Steps: 4}, w.pruneAfter(stepsKept+time.Minute))
	for i, id := range []string{first, broken} {
		steps, _ := w.steps(id)
		require.Empty(t, steps)
		got := w.turn(id)
		require.NotNil(t, got.StepsPrunedAt)
		got.StepsPrunedAt = nil
		for j := range before[i].ToolOutcomes {
			before[i].ToolOutcomes[j].Output = nil
		}
		require.Equal(t, before[i], got, "the record stays, but for what tools gave")
	}
	require.Equal(t, said, w.messages(th))

	// The texts outlive the turns by two days, those of the turn that waits for as long as it does: its prompt is told as it was.
	require.Equal(t, retention.Pruned{}, w.pruneAfter(stepsKept+24*time.Hour))
	require.Equal(t, 3, w.rows()["prompt_texts"], "two prompts, and the same tools")
	require.Equal(t, retention.Pruned{Texts: 1}, w.pruneAfter(stepsKept+72*time.Hour))
	_, requests := w.steps(waits)
	require.Len(t, requests, 1)
	require.Contains(t, requests[0].System, "Answer briefly.")
	require.NotEmpty(t, requests[0].Tools)

	// It goes on with the answer; the failed turn is repeated.
	w.run(w.ask(waiting.ID, "The blue one").TurnID)
	require.Equal(t, turn.Succeeded, w.turn(waits).Status)
	fail = false
	var again turn.Decided
	w.tx(func(tx pgx.Tx) (err error) {
		again, err = turn.Retry(t.Context(), tx, w.TenantID, broken)
		return err
	})
	w.run(again.Due)
	require.Equal(t, turn.Succeeded, w.turn(again.Due).Status)
	steps, requests := w.steps(again.Due)
	require.Len(t, steps, 1)
	require.Len(t, requests[0].Messages, 3)
	require.Contains(t, requests[0].System, "Answer at length.")
}

// Where a webhook's body is not kept any more, the model is told so, and the record tells the same.
func TestAPrunedPayload(t *testing.T) {
	var asked []model.Request
	w := newWorld(t, script(func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		asked = append(asked, r)
		return say(s, "Well."), nil
	}))
	c, th := w.call(`{"secret":"s3cr3t"}`, "It broke")
	w.run(c.RunID)
	require.Contains(t, asked[0].Messages[0].Blocks[1].Text, "s3cr3t")
	require.Equal(t, retention.Pruned{Turns: 1, Steps: 1, Payloads: 1}, w.pruneAfter(stepsKept+time.Minute))

	next := w.ask(th.ID, "And now?").TurnID
	w.run(next)
	text, err := json.Marshal(asked[1])
	require.NoError(t, err)
	require.NotContains(t, string(text), "s3cr3t")
	require.Contains(t, asked[1].Messages[0].Blocks[1].Text, "This call's body is not kept any more.")
	_, told := w.steps(next)
	same(t, asked[1:], told)
}
