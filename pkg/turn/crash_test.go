package turn_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/bedrock"
	"github.com/agentplatform/agentplatform/pkg/local/offline"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/tool"
	"github.com/agentplatform/agentplatform/pkg/turn"
	"github.com/agentplatform/agentplatform/schema"
)

// What the victim is told.
const (
	victimURL    = "TURN_VICTIM_DATABASE"
	victimTenant = "TURN_VICTIM_TENANT"
	victimTurn   = "TURN_VICTIM_TURN"
	victimPoint  = "TURN_VICTIM_POINT" // it kills itself at the n-th signal
)

// victim is a process that runs one turn with the real model client, and dies without a word at the point it is told.
func victim() {
	ctx := context.Background()
	db, err := postgres.Open(ctx, postgres.Config{URL: os.Getenv(victimURL)})
	check(err)
	point, err := strconv.Atoi(os.Getenv(victimPoint))
	check(err)
	events := &recorder{notify: func(e publish.Event) {
		if m, ok := e.(publish.NewMessage); ok {
			fmt.Println(m.Message.ID) // its subscribers have it
		}
	}}
	runner, stop := offlineRunner(db, events)
	defer stop()
	var seen atomic.Int64
	runner.Signal = func(string) {
		if seen.Add(1) == int64(point) {
			check(syscall.Kill(os.Getpid(), syscall.SIGKILL))
			select {}
		}
	}
	check(runner.Run(ctx, turn.Dispatch{TenantID: os.Getenv(victimTenant), TurnID: os.Getenv(victimTurn)}))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func offlineRunner(db *postgres.DB, events *recorder) (*turn.Runner, func()) {
	server := httptest.NewServer(offline.New(offline.Config{}))
	client, err := bedrock.New(bedrock.Config{Region: "us-east-1", Endpoint: server.URL})
	check(err)
	prices, err := model.ParsePrices(schema.Prices)
	check(err)
	return &turn.Runner{DB: db, Model: client, Publish: events, Prices: prices, Tools: tool.Of(append(victimsMail(db), tool.ReadThread(db))...),
			Dispatch: func(context.Context, string, string) error { return nil }},
		func() { client.Close(); server.Close() }
}

// A process that is killed at any point of a turn, and whoever takes the turn over, leave exactly one reply; a second kill changes nothing.
func TestKillAtEveryPoint(t *testing.T) {
	for _, body := range []string{"Hello", "/tool read_thread {\"threadId\":\"CHAT-1\"}\n/tool read_thread {\"threadId\":\"CHAT-1\"}"} {
		w := newWorld(t, nil)
		runner, stop := offlineRunner(w.db.App, w.events)
		defer stop()
		w.runner = runner
		points := 0
		for point := 1; ; point++ {
			th := w.open()
			asked := w.ask(th.ID, body)
			killed, seen := w.kill(asked.TurnID, point)
			if !killed {
				points = point - 1
				break
			}
			w.expireLeases()
			_, more := w.kill(asked.TurnID, 1) // dies again as soon as it has taken over, if there is still something to take over
			w.expireLeases()
			w.run(asked.TurnID)

			var replies []thread.Message
			for _, m := range w.messages(th) {
				if m.Role == thread.Assistant {
					replies = append(replies, m)
				}
			}
			require.Len(t, replies, 1, "killed at point %d", point)
			record := w.turn(asked.TurnID)
			require.Equal(t, turn.Succeeded, record.Status)
			require.Len(t, record.ToolOutcomes, len(replies[0].ToolCalls))
			_, err := notify.Sweep(t.Context(), w.db.App, w.events, 0)
			require.NoError(t, err)
			w.retold(th)
			published := strings.Contains(seen+more, replies[0].ID)
			for _, m := range w.events.newMessages() {
				published = published || m.ID == replies[0].ID
			}
			require.True(t, published, "killed at point %d: the reply was never published", point)
		}
		t.Logf("%q: killed at each of %d points", body, points)
		require.GreaterOrEqual(t, points, 5)
	}
}

// kill runs the turn in a process that dies at the point; false: it came to the end alive. published holds what its subscribers got.
func (w *world) kill(turnID string, point int) (killed bool, published string) {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), victimURL+"="+w.db.AppURL, victimTenant+"="+w.TenantID, victimTurn+"="+turnID, victimPoint+"="+strconv.Itoa(point))
	out, err := cmd.CombinedOutput()
	if err == nil {
		return false, string(out)
	}
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(w.t, ok && status.Signal() == syscall.SIGKILL, "%v: %s", err, out)
	return true, string(out)
}
