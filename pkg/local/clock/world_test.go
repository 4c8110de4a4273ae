package clock

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// hand is a time that tests move on.
type hand struct {
	mu  sync.Mutex
	now time.Time
}

func (h *hand) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hand) set(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = now
}

// world is a database, a time, and clocks that read it.
type world struct {
	*testing.T
	db    *pgtest.DB
	super *pgx.Conn
	hand  *hand
	fired chan occurrence
}

type occurrence struct {
	name string
	at   time.Time
}

var began = time.Date(2027, 3, 13, 12, 0, 0, 0, time.UTC)

func newWorld(t *testing.T) *world {
	db := pgtest.New(t)
	return &world{T: t, db: db, super: db.Superuser(t), hand: &hand{now: began}, fired: make(chan occurrence, 20_000)}
}

func (w *world) open() *Clock {
	w.Helper()
	c, err := Open(w.Context(), Config{URL: w.db.SuperURL, Now: w.hand.Now, Attempts: 3})
	require.NoError(w, err)
	w.Cleanup(c.Close)
	return c
}

func (w *world) keep(_ context.Context, s clock.Schedule, at time.Time) error {
	w.fired <- occurrence{s.Name, at.UTC()}
	return nil
}

// run runs a clock until stop, or the test's end.
func (w *world) run(c *Clock, fire Fire) (stop func()) {
	ctx, cancel := context.WithCancel(w.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = c.Run(ctx, fire)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-over
	})
	w.Cleanup(stop)
	return stop
}

func (w *world) put(c *Clock, s clock.Schedule) {
	w.Helper()
	s.Enabled = true
	require.NoError(w, c.Put(w.Context(), s))
}

func (w *world) next() occurrence {
	w.Helper()
	select {
	case o := <-w.fired:
		return o
	case <-time.After(time.Minute):
		w.Fatal("nothing is fired")
		return occurrence{}
	}
}

// quiet waits until all that was fired is written.
func (w *world) quiet() {
	w.Helper()
	require.Eventually(w, func() bool {
		var claimed int
		require.NoError(w, w.super.QueryRow(w.Context(), `select count(*) from local_clock.schedules where wake is distinct from occurrence or wake <= $1`, w.hand.Now()).Scan(&claimed))
		return claimed == 0
	}, time.Minute, time.Millisecond)
	require.Empty(w, w.fired, "nothing else was fired")
}

// awaits waits until a schedule's row says so.
func (w *world) awaits(name string, occurrence, wake time.Time, attempts int) {
	w.Helper()
	require.Eventually(w, func() bool {
		var same bool
		err := w.super.QueryRow(w.Context(), `select (occurrence, wake, attempts) is not distinct from ($2::timestamptz, $3::timestamptz, $4::int) from local_clock.schedules where name = $1`,
			name, occurrence, wake, attempts).Scan(&same)
		return err == nil && same
	}, time.Minute, time.Millisecond, "%s: %s %s %d", name, occurrence, wake, attempts)
}

func count(w *world, where string) (n int) {
	w.Helper()
	require.NoError(w, w.super.QueryRow(w.Context(), `select count(*) from local_clock.schedules where `+where).Scan(&n))
	return n
}
