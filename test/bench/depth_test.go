package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/model"
)

// What a user writes for the instant model to call a tool three times.
const (
	oneByOne = "call one by one"
	atOnce   = "call at once"
)

const toolCalls = 3

// tools is what the instant model calls next; nil: it has called enough, or was not asked to.
func tools(messages []model.Message) (uses []model.Block) {
	asked, called := "", 0
	for _, m := range messages {
		for _, b := range m.Blocks {
			switch {
			case b.ToolUse != nil:
				called++
			case m.Role == model.User && b.ToolResult == nil:
				asked, called = b.Text, 0
			}
		}
	}
	n := 0
	switch {
	case strings.HasPrefix(asked, oneByOne) && called < toolCalls:
		n = 1
	case strings.HasPrefix(asked, atOnce) && called == 0:
		n = toolCalls
	}
	for i := range n {
		uses = append(uses, model.Block{ToolUse: &model.ToolUse{ID: fmt.Sprintf("call-%d", called+i), Name: "read_thread", Input: json.RawMessage(`{"threadId":"CHAT-1","limit":1}`)}})
	}
	return uses
}

// BenchmarkToolTurn: a turn with three calls of a tool that reads a row, of an instant model: from the request to the reply's event at the
// subscriber. What the tool itself takes is in it. The floor writes the turn's rows by bare SQL in as many commits.
func BenchmarkToolTurn(b *testing.B) {
	w := open(b)
	w.settle(b)
	var made struct{ CreateAgent struct{ ID string } }
	must(b, w.query(request(`mutation { createAgent(input: {name: "Reader", tools: ["read_thread"]}) { id } }`, nil), &made))
	for name, rounds := range map[string]int{oneByOne: toolCalls, atOnce: 1} {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) { toolTurns(b, w, made.CreateAgent.ID, name) })
		b.Run(strings.ReplaceAll(name, " ", "-")+"/floor", func(b *testing.B) { floorToolTurns(b, w, rounds) })
	}
}

func toolTurns(b *testing.B, w *world, agent, body string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var took []time.Duration
	var thread string
	replied := make(chan time.Time, 1)
	for i := 0; b.Loop(); i++ {
		if i%turnsPerThread == 0 {
			var out struct{ CreateThread struct{ ID string } }
			must(b, w.query(request(`mutation ($a: ID!) { createThread(input: {agentId: $a}) { id } }`, map[string]any{"a": agent}), &out))
			thread = out.CreateThread.ID
			must(b, w.subscribe(ctx, []string{thread}, `... on NewMessageEvent { message { role toolResults { status } } }`, func(raw json.RawMessage) {
				if strings.Contains(string(raw), `"assistant"`) {
					if strings.Count(string(raw), `"ok"`) != toolCalls {
						b.Errorf("%s", raw)
					}
					replied <- time.Now()
				}
			}))
		}
		began := time.Now()
		must(b, w.query(request(`mutation ($t: ID!, $b: String!) { sendMessage(input: {threadId: $t, body: $b}) { id } }`, map[string]any{"t": thread, "b": body}), nil))
		took = append(took, (<-replied).Sub(began))
	}
	b.ReportMetric(percentile(took, 50), "sent→published-p50-ms")
	b.ReportMetric(percentile(took, 95), "sent→published-p95-ms")
}

// floorToolTurns writes the turn's three commits, and two for each round of calls: the calls begun, and ended.
func floorToolTurns(b *testing.B, w *world, rounds int) {
	pool, err := w.superuser()
	must(b, err)
	defer pool.Close()
	ctx := context.Background()
	_, err = pool.Exec(ctx, `create table if not exists floor (id bigserial primary key, client int, kind text, body text, state text)`)
	must(b, err)
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		for range rounds {
			var begun, ended pgx.Batch
			for range toolCalls / rounds {
				begun.Queue(`insert into floor (client, kind, state) values (0, 'step', 'started')`)
				ended.Queue(`insert into floor (client, kind, body, state) values (0, 'step', '{}', 'finished')`)
			}
			must(b, pool.SendBatch(ctx, &begun).Close())
			must(b, pool.SendBatch(ctx, &ended).Close())
		}
		must(b, floorTurn(ctx, pool, 0))
		took = append(took, time.Since(began))
	}
	b.ReportMetric(percentile(took, 50), "p50-ms")
	b.ReportMetric(percentile(took, 95), "p95-ms")
}

// BenchmarkContext: what a turn in a thread of 10,000 messages takes to be claimed and to have its context, the summary of most of them and the newest:
// its perception, by its own record. The floor reads the last messages by bare SQL.
func BenchmarkContext(b *testing.B) {
	w := open(b)
	w.settle(b)
	pool, err := w.superuser()
	must(b, err)
	defer pool.Close()
	ctx := context.Background()
	thread, err := w.openThread()
	must(b, err)
	var uuid string
	must(b, pool.QueryRow(ctx, `select uuid from threads where prefix || '-' || number = $1 and tenant_id = $2`, thread, acme).Scan(&uuid))
	const messages = 10_000
	for _, sql := range []string{
		`insert into thread_turns (tenant_id, id, thread_uuid, agent_id, number, status, finished_at, prompt)
			select tenant_id, gen_random_uuid(), uuid, agent_id, n, 'succeeded', now(), '{}' from threads, generate_series(1, $2 / 2) n where uuid = $1`,
		`insert into messages (tenant_id, id, thread_uuid, position, role, body, token_count, turn_id, turn_number)
			select t.tenant_id, gen_random_uuid(), t.thread_uuid, n, case when n % 2 = 1 then 'user' else 'assistant' end::message_role, repeat('All is well so far. ', 20), 100, t.id, t.number
			from thread_turns t join generate_series(1, $2) n on t.number = (n + 1) / 2 where t.thread_uuid = $1`,
		`update threads set message_count = $2, turn_count = $2 / 2, token_count = $2 * 100 where uuid = $1`,
	} {
		_, err := pool.Exec(ctx, sql, uuid, messages)
		must(b, err)
	}
	for uncovered := messages; uncovered > 400; { // as in a thread that has grown, and was summarised on the way
		w.perceive(b, thread)
		must(b, pool.QueryRow(ctx, `select message_count - coalesce((select max(through_position) from thread_summaries where thread_uuid = uuid), 0) from threads where uuid = $1`,
			uuid).Scan(&uncovered))
	}
	_, err = pool.Exec(ctx, `analyze`)
	must(b, err)
	b.Run("platform", func(b *testing.B) {
		var took []time.Duration
		for b.Loop() {
			took = append(took, w.perceive(b, thread))
		}
		b.ReportMetric(percentile(took, 50), "p50-ms")
		b.ReportMetric(percentile(took, 95), "p95-ms")
	})
	b.Run("floor", func(b *testing.B) {
		var took []time.Duration
		for b.Loop() {
			began := time.Now()
			rows, err := pool.Query(ctx, `select role::text, body, token_count from messages where thread_uuid = $1 and tenant_id = $2 order by position desc limit 400`, uuid, acme)
			must(b, err)
			var role, body string
			var tokens int
			_, err = pgx.ForEachRow(rows, []any{&role, &body, &tokens}, func() error { return nil })
			must(b, err)
			took = append(took, time.Since(began))
		}
		b.ReportMetric(percentile(took, 50), "p50-ms")
		b.ReportMetric(percentile(took, 95), "p95-ms")
	})
}

// perceive has a turn run in a thread, and tells how long its perception took.
func (w *world) perceive(b *testing.B, thread string) time.Duration {
	b.Helper()
	var sent struct{ SendMessage struct{ TurnID string } }
	must(b, w.query(request(`mutation ($t: ID!) { sendMessage(input: {threadId: $t, body: "And now?"}) { turnId } }`, map[string]any{"t": thread}), &sent))
	for {
		var got struct {
			Turn struct {
				Status string
				Phases []struct {
					Name       string
					DurationMs float64
				}
			}
		}
		must(b, w.query(request(`query ($id: ID!) { turn(id: $id) { status phases { name durationMs } } }`, map[string]any{"id": sent.SendMessage.TurnID}), &got))
		switch got.Turn.Status {
		case "succeeded":
			if p := got.Turn.Phases[0]; p.Name == "perception" {
				return time.Duration(p.DurationMs * float64(time.Millisecond))
			}
			b.Fatalf("%v", got)
		case "failed":
			b.Fatalf("%v", got)
		}
	}
}
