package ledger_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit/ledger"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/sign"
)

// victimOrders names the environment variable with the victim's orders.
const victimOrders = "LEDGER_VICTIM"

// orders tell a victim where its ledger is, what to do, and at which of its points to die.
type orders struct {
	Database, Endpoint, Bucket, KeyFile, Do string
	Offset                                  time.Duration
	Batch                                   int
	Point                                   int    // counted from 1
	At                                      string // or the first of this name
}

// victim is a process that does one thing, and dies without a word at the point it is told.
func victim(text string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var o orders
	check(json.Unmarshal([]byte(text), &o))
	db, err := postgres.Open(ctx, postgres.Config{URL: o.Database, MaxConns: 1}) // as a function has it
	check(err)
	signer, err := sign.File(o.KeyFile)
	check(err)
	seen := 0
	l := ledger.New(ledger.Config{DB: db, Bucket: store(o.Endpoint).In(o.Bucket), Signer: signer, Key: emissionKey, Origin: origin, Interval: interval, Retention: retention,
		BeaconEvery: -1, Batch: o.Batch, Uploads: 1, Now: func() time.Time { return time.Now().Add(o.Offset) }, Signal: func(point string) {
			if seen++; seen == o.Point || point == o.At {
				fmt.Println(point)
				check(syscall.Kill(os.Getpid(), syscall.SIGKILL))
				select {}
			}
		}})
	if o.Do == "drain" {
		check(l.Drain(ctx))
	} else {
		check(l.PublishAnchor(ctx))
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

// kill lets a victim do something; point is where it died, empty when it came to its end alive.
func (w *world) kill(do string, point int) (died string) {
	w.t.Helper()
	return w.run(orders{Do: do, Point: point})
}

func (w *world) killAt(do, point string) (died string) {
	w.t.Helper()
	return w.run(orders{Do: do, At: point})
}

func (w *world) run(o orders) (died string) {
	w.t.Helper()
	o.Database, o.Endpoint, o.Bucket, o.KeyFile, o.Offset, o.Batch = w.db.LedgerURL, w.endpoint, w.name, w.keyFile, w.offset, 10
	text, err := json.Marshal(o)
	require.NoError(w.t, err)
	cmd := exec.CommandContext(w.t.Context(), os.Args[0])
	cmd.Dir = "/" // the S3 server has moved this process into its folder
	cmd.Env = append(os.Environ(), victimOrders+"="+string(text))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil {
		return ""
	}
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(w.t, ok && status.Signal() == syscall.SIGKILL, "%v: %s", err, stderr.String())
	w.unlocked()
	return strings.TrimSpace(string(out))
}

// unlocked waits until the database has noticed that a killed process is gone. In life the next wake or the sweep comes after that.
func (w *world) unlocked() {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		return !ask[bool](w, `select exists (select from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database()))`)
	}, time.Minute, time.Millisecond)
}

// A process that is killed at any point of draining, of a beacon or of an anchor loses nothing and doubles nothing: whoever comes next finishes its work.
func TestKillAtEveryPoint(t *testing.T) {
	w := newWorld(t, 3)
	for do, all := range map[string][]string{
		"drain": {"drain: locked", "drain: compared", "drain: read", "drain: written", "drain: committed", "beacon: read", "beacon: put", "beacon: written", "beacon: committed"},
		"anchor": {"anchor: compared", "close: begun", "close: written", "anchor: closed", "anchor: begun", "anchor: log put", "anchor: logs written", "anchor: sealed", "anchor: put",
			"anchor: written", "anchor: committed"},
	} {
		var points []string
		for point := 1; ; point++ {
			w.recordAll(2)
			if do == "anchor" {
				w.drain()
				w.pass(interval)
			}
			died := w.kill(do, point)
			w.recordAll(1)
			w.drain()
			require.NoError(t, w.ledger().PublishAnchor(t.Context()))
			w.consistent()
			if died == "" {
				break
			}
			points = append(points, died)
		}
		t.Logf("%s: killed at each of %d points: %s", do, len(points), strings.Join(points, " · "))
		require.Subset(t, points, all)
	}
}
