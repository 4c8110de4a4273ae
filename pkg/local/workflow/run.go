package workflow

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/local/workers"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// The engine's own times.
const (
	round      = time.Minute // a look without a reason
	pruneEvery = time.Hour
	afterError = time.Second // before the database is asked again
	beside     = 10 * time.Millisecond
	lastWords  = 10 * time.Second // for what was worked out when it stops
)

const (
	channel = "local_workflow"
	space   = 1819239275 // of the advisory locks that say which holders are there
)

// run is one Run.
type run struct {
	*Engine
	holder  int32         // its number
	free    workers.Free  // a token each that may work
	strays  chan struct{} // a branch may be held here that nobody works on
	mu      sync.Mutex
	asleep  time.Time       // until when Run waits; zero: it does not
	here    map[int64]int   // branches that are worked on here
	strange map[int64]int64 // branches that are held here and were not worked on when that was last asked, with their claims
	working sync.WaitGroup
}

// Run takes runs from state to state until ctx ends, then waits for functions that are being called; their context ends with it. What they answer is
// kept; those that give up are called again by the next Run. Run returns ctx's error.
func (e *Engine) Run(ctx context.Context) error {
	r := &run{Engine: e, free: workers.New(e.config.Workers), strays: make(chan struct{}, 1), here: map[int64]int{}}
	ready := make(chan struct{})
	var own, listener sync.WaitGroup
	listening, hangUp := context.WithCancel(context.WithoutCancel(ctx)) // what is held here is held until it is done
	defer hangUp()
	listener.Go(func() { r.listen(listening, sync.OnceFunc(func() { close(ready) })) })
	select {
	case <-ready:
	case <-ctx.Done():
		hangUp()
		listener.Wait()
		return ctx.Err()
	}
	e.running.Add(1)
	if err := r.freeDead(ctx); err != nil && ctx.Err() == nil {
		slog.ErrorContext(ctx, "the workflow engine cannot look for what was left", "error", err)
	}
	own.Go(func() { r.sweep(ctx) })
	if e.config.Ended != nil {
		own.Go(func() { r.tellEnds(ctx) })
	}
	for ctx.Err() == nil {
		r.wait(ctx, r.deliver(ctx))
	}
	e.running.Add(-1)
	r.working.Wait()
	own.Wait()
	r.leave(ctx)
	hangUp()
	listener.Wait()
	return ctx.Err()
}

// deliver has workers begin with what is due, as far as they are free, and says when to look again.
func (r *run) deliver(ctx context.Context) (next time.Time) {
	n := r.free.Take(ctx)
	if n == 0 {
		return next
	}
	all, err := r.claim(ctx, n)
	if len(all) > 0 {
		r.signal("claimed")
	}
	r.free.Give(n - len(all))
	for _, h := range all {
		r.enter(h.id)
		r.working.Go(func() {
			r.work(ctx, h)
			r.free.Give(1)
		})
	}
	if err == nil && len(all) == n {
		return r.now() // there may be more
	}
	var until time.Time
	if err == nil {
		next, until, err = r.next(ctx)
	}
	if err == nil && !until.IsZero() && !until.After(r.now()) {
		if err = r.overdue(ctx); err == nil {
			return r.now()
		}
	}
	if err != nil {
		signal(r.strays) // it may have claimed what it could not read
		if ctx.Err() == nil {
			slog.ErrorContext(ctx, "the workflow engine cannot read what is due", "error", err)
		}
		return r.now().Add(afterError)
	}
	if next = earlier(next, until); len(all) == 0 && !next.IsZero() && !next.After(r.now()) {
		return r.now().Add(beside) // another engine is claiming it, or it has just become due
	}
	return next
}

// overdue ends runs whose time is over.
func (r *run) overdue(ctx context.Context) error {
	r.signal("time out")
	err := r.ask(ctx, `with due as (select id from local_workflow.runs where until <= $1 order by until limit 100 for update skip locked)
		select local_workflow.finish(id, $1, $2, 'TIMED_OUT', null, '', '') from due`, []any{r.now(), r.config.Ended != nil}, ignored)
	signal(r.ended)
	return err
}

func (r *run) signal(point string) { r.config.Signal(point) }

func (r *run) enter(branch int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.here[branch]++
}

func (r *run) left(branch int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.here[branch]--; r.here[branch] == 0 {
		delete(r.here, branch)
	}
}

func (r *run) wait(ctx context.Context, next time.Time) {
	pause := round
	if !next.IsZero() {
		pause = min(pause, next.Sub(r.now()))
	}
	if pause <= 0 {
		return
	}
	r.sleeps(r.now().Add(pause))
	defer r.sleeps(time.Time{})
	workers.Pause(ctx, pause, r.look)
}

func (r *run) sleeps(until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asleep = until
}

// wakes says that a branch is to be looked at then; zero: it is not.
func (r *run) wakes(at time.Time) {
	if at.IsZero() {
		return
	}
	r.mu.Lock()
	sooner := r.asleep.IsZero() || at.Before(r.asleep)
	r.mu.Unlock()
	if sooner {
		r.Look()
	}
}

// listen looks whenever the database tells that there is something to do. Its connection is what says to others that this Run is there.
func (r *run) listen(ctx context.Context, ready func()) {
	for ctx.Err() == nil {
		if err := r.notifications(ctx, ready); ctx.Err() == nil {
			slog.WarnContext(ctx, "the workflow engine has lost its connection", "error", err)
			select {
			case <-time.After(afterError):
			case <-ctx.Done():
			}
		}
	}
}

func (r *run) notifications(ctx context.Context, ready func()) error {
	r.signal("listen")
	config, err := postgres.Config{URL: r.config.URL, Name: "agentplatform workflow"}.Connection()
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if r.holder == 0 {
		if err := conn.QueryRow(ctx, `select nextval('local_workflow.holders')`).Scan(&r.holder); err != nil {
			return err
		}
	}
	if _, err := conn.Exec(ctx, `select pg_advisory_lock($1::int, $2::int)`, space, r.holder); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `listen `+channel); err != nil {
		return err
	}
	ready()
	r.Look()
	for {
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return err
		}
		r.Look()
	}
}
