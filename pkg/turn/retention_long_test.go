//go:build long

package turn_test

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/tool"
)

// What docs/operations.md states of a turn beyond its messages, indexes included, in bytes.
const (
	kept90  = 4096 // with its steps
	keptFor = 1024 // once it is pruned
)

// sizes are the bytes of each table with its indexes, packed: what deleted rows have left is used again by new ones.
func (w *world) sizes() (all map[string]int) {
	w.t.Helper()
	super := w.db.Superuser(w.t)
	_, err := super.Exec(w.t.Context(), `vacuum full`)
	require.NoError(w.t, err)
	rows, err := super.Query(w.t.Context(), `select relname::text, pg_total_relation_size(oid)::integer from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`)
	require.NoError(w.t, err)
	all = map[string]int{}
	var name string
	var bytes int
	_, err = pgx.ForEachRow(rows, []any{&name, &bytes}, func() error {
		all[name] = bytes
		return nil
	})
	require.NoError(w.t, err)
	return all
}

// quiet keeps each turn's line out of the test's output.
func quiet(t *testing.T) {
	before := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { slog.SetDefault(before) })
}

// A long thread costs its messages and a constant for each turn: before it is pruned, and less afterwards.
func TestALongThreadCostsItsMessages(t *testing.T) {
	const turns = 2000
	quiet(t)
	w := newWorld(t, script(func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		if n := len(r.Messages); r.Messages[n-1].Blocks[0].ToolResult == nil && len(last(r))%3 == 0 {
			return uses(s, "", "read_thread", `{"threadId":"CHAT-1","limit":1}`), nil
		}
		return say(s, "This is an answer of the usual length, more or less."), nil
	}))
	w.runner.Tools = tool.Of(tool.ReadThread(w.db.App))
	th := w.open()
	empty := w.sizes()
	beforeRows := w.rows()
	super := w.db.Superuser(t)
	for n := range turns {
		if n%250 == 0 { // the tests' server does not do so by itself
			_, err := super.Exec(t.Context(), `vacuum analyze`)
			require.NoError(t, err)
		}
		w.run(w.ask(th.ID, "This is a question of the usual length, "+"x"[:n%2]+"more or less?").TurnID)
	}
	w.hourLater()

	for _, c := range []struct {
		name string
		most int
	}{{"kept", kept90}, {"pruned", keptFor}} {
		if c.name == "pruned" {
			w.pruneAfter(stepsKept + 72*time.Hour)
		}
		sizes, beyond := w.sizes(), 0
		for _, table := range slices.Sorted(maps.Keys(sizes)) {
			grown := sizes[table] - empty[table]
			if grown == 0 {
				continue
			}
			t.Logf("%s: %s has grown by %d bytes a turn", c.name, table, grown/turns)
			if table != "messages" {
				beyond += grown
			}
		}
		t.Logf("%s: %d bytes a turn beyond its messages, rows %v", c.name, beyond/turns, more(beforeRows, w.rows()))
		require.LessOrEqual(t, beyond/turns, c.most)
	}
}
