package ledger_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit/ledger"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/postgres/embedded"
	"github.com/agentplatform/agentplatform/pkg/postgres/migrate"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/schema"
)

// The server of the database is restarted while events are recorded, drained and anchored.
func TestDatabaseRestart(t *testing.T) {
	w := newWorld(t, 2)
	server := newServer(t)
	w.open(server.database())
	w.tenants = []string{w.db.Tenant(t, "one"), w.db.Tenant(t, "two")}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	var acts atomic.Int64
	for _, tenant := range w.tenants {
		running.Go(func() {
			for ctx.Err() == nil {
				e := event(tenant)
				if w.box.InTenant(ctx, w.db.App, tenant, func(tx pgx.Tx) error { return w.box.Record(ctx, tx, e) }) == nil {
					acts.Add(1)
				}
			}
		})
	}
	var errs atomic.Int64
	l := w.ledger(func(c *ledger.Config) { c.Interval = time.Second })
	for _, do := range []func(context.Context) error{l.Drain, l.PublishAnchor} {
		running.Go(func() {
			for ctx.Err() == nil {
				if do(ctx) != nil {
					errs.Add(1)
				}
			}
		})
	}
	for range some(faults) {
		before, failed := acts.Load(), errs.Load()
		require.Eventually(t, func() bool { return acts.Load() > before+20 }, time.Minute, time.Millisecond)
		server.stop()
		require.Eventually(t, func() bool { return errs.Load() > failed }, time.Minute, time.Millisecond)
		server.start()
	}
	stop()
	running.Wait()
	w.open(w.db)
	w.drain()
	w.anchor()
	// An act whose answer was lost may be done or not: the outbox says which are.
	rows, err := w.root.Query(t.Context(), `select tenant_id::text, event_id::text from audit_outbox order by position`)
	require.NoError(t, err)
	var tenant, id string
	done := int64(0)
	_, err = pgx.ForEachRow(rows, []any{&tenant, &id}, func() error {
		w.recorded[tenant] = append(w.recorded[tenant], id)
		done++
		return nil
	})
	require.NoError(t, err)
	require.GreaterOrEqual(t, done, acts.Load())
	w.consistent()
}

// server is a PostgreSQL of a test's own.
type server struct {
	t      *testing.T
	config embedded.Config
	*embedded.Server
}

func newServer(t *testing.T) *server {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0") // the same port each time: it is in the name of the socket
	require.NoError(t, err)
	port := free.Addr().(*net.TCPAddr).Port
	require.NoError(t, free.Close())
	dir, err := os.MkdirTemp("", "ledger") // short: a socket's path is limited
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	s := &server{t: t, config: embedded.Config{Dir: filepath.Join(dir, "pg"), Password: "test", Port: port}}
	s.start()
	t.Cleanup(s.stop)
	url := s.URL(embedded.Superuser, "test", embedded.Database)
	require.NoError(t, migrate.Up(t.Context(), url, schema.SQL))
	require.NoError(t, migrate.SetPasswords(t.Context(), url, map[string]string{"agentplatform_app": "test", "agentplatform_ledger": "test"}))
	return s
}

func (s *server) start() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var err error
	s.Server, err = embedded.Start(ctx, s.config)
	require.NoError(s.t, err)
}

func (s *server) stop() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(s.t, s.Stop(ctx))
}

func (s *server) database() *pgtest.DB {
	s.t.Helper()
	url := func(role string) string { return s.URL(role, "test", embedded.Database) }
	db := &pgtest.DB{AppURL: url("agentplatform_app"), LedgerURL: url("agentplatform_ledger"), SuperURL: url(embedded.Superuser)}
	db.App = db.Open(s.t, db.AppURL)
	return db
}

// fault is what happens to a request to the bucket.
type fault struct {
	name string
	done bool // the request is carried out first
	cut  bool // the connection is cut instead of a 503
}

var faults = []fault{{"refused", false, false}, {"cut off", false, true}, {"refused after it was done", true, false}, {"cut off after it was done", true, true}}

// proxy stands between ledger and bucket, and lets some requests fail.
type proxy struct {
	*httptest.Server
	seen atomic.Int64
	fail atomic.Pointer[func(n int64, r *http.Request) *fault]
}

func newProxy(t testing.TB, to string) *proxy {
	t.Helper()
	target, err := url.Parse(to)
	require.NoError(t, err)
	p := &proxy{}
	pass := &httputil.ReverseProxy{ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // it is signed
	}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		n := p.seen.Add(1)
		var f *fault
		if decide := p.fail.Load(); decide != nil {
			f = (*decide)(n, r)
		}
		if f == nil {
			pass.ServeHTTP(out, r)
			return
		}
		if f.done {
			pass.ServeHTTP(httptest.NewRecorder(), r)
		}
		if f.cut {
			panic(http.ErrAbortHandler)
		}
		out.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(p.Close)
	return p
}

// failing lets requests fail from now on, counted from 1; nil: none.
func (p *proxy) failing(decide func(n int64, r *http.Request) *fault) {
	p.seen.Store(0)
	if decide == nil {
		p.fail.Store(nil)
		return
	}
	p.fail.Store(&decide)
}

// A write that fails, before or after it was done, is repeated: no number is used twice, nothing is lost.
func TestBucketFaults(t *testing.T) {
	w := newWorld(t, 2)
	p := newProxy(t, w.endpoint)
	through := store(p.URL).In(w.name)
	for _, kind := range some([]string{"/heads/", "/events/", "/anchors/"}) {
		for _, f := range some(faults) {
			w.recordAll(1)
			w.pass(interval)
			var once atomic.Bool
			p.failing(func(_ int64, r *http.Request) *fault {
				if r.Method == http.MethodPut && strings.Contains(r.URL.Path, kind) && once.CompareAndSwap(false, true) {
					return &f
				}
				return nil
			})
			l := w.ledger(func(c *ledger.Config) { c.Bucket = through })
			_ = l.Drain(t.Context())
			_ = l.PublishAnchor(t.Context())
			p.failing(nil)
			require.True(t, once.Load(), "%s %s", kind, f.name)
			require.NoError(t, l.Drain(t.Context()))
			require.NoError(t, l.PublishAnchor(t.Context()))
		}
	}
	w.consistent()
}

// A bucket that does not answer at all: nothing is chained that could not be compared, nothing is closed and forgotten; when it is back, all goes on.
func TestBucketOutage(t *testing.T) {
	w := newWorld(t, 1)
	p := newProxy(t, w.endpoint)
	through := func(c *ledger.Config) {
		c.Bucket, c.PutTimeout = store(p.URL).In(w.name), 100*time.Millisecond // shorter than the client's patience
	}
	w.recordAll(2)
	p.failing(func(int64, *http.Request) *fault { return &faults[0] })
	require.Error(t, w.ledger(through).Drain(t.Context()))
	require.Error(t, w.ledger(through).PublishAnchor(t.Context()))
	require.Equal(t, 2, ask[int](w, `select count(*) from audit_outbox where state = 'pending'`))

	p.failing(func(_ int64, r *http.Request) *fault { // it takes nothing
		if r.Method == http.MethodPut {
			return &faults[0]
		}
		return nil
	})
	require.Error(t, w.ledger(through).Drain(t.Context()))
	require.Equal(t, 0, ask[int](w, `select count(*) from audit_outbox where state = 'pending'`), "chained, though no beacon could tell of it")
	w.pass(interval)
	require.Error(t, w.ledger(through).PublishAnchor(t.Context()))
	require.Error(t, w.ledger(through).PublishAnchor(t.Context()))
	require.Equal(t, 1, ask[int](w, `select count(*) from audit_anchors`))
	p.failing(nil)
	require.NoError(t, w.ledger(through).Drain(t.Context()))
	require.NoError(t, w.ledger(through).PublishAnchor(t.Context()))
	w.consistent()
}

// No role that the platform uses changes what is in a chain or in an anchor's row: by grants, and for the tables' owner by triggers.
func TestNobodyChangesAChain(t *testing.T) {
	w := newWorld(t, 1)
	w.recordAll(2)
	w.drain()
	w.anchor()
	w.drain()
	urls := map[string]string{"app": w.db.AppURL, "ledger": w.db.LedgerURL, "reader": w.db.ReaderURL, "owner": w.db.OwnerURL}
	for role, url := range urls {
		conn := w.db.Connect(t, url)
		for _, sql := range []string{
			`update audit_events set canonical = canonical`, `update audit_events set cadence = 1 where chain_position = 1`, `delete from audit_events`, `delete from audit_events where false`,
			`truncate audit_events`, `truncate audit_events cascade`, `merge into audit_events e using (select 1) x on true when matched then delete`,
			`insert into audit_events select * from audit_events on conflict (event_id) do update set actor = 'another'`,
			`delete from audit_anchors`, `truncate audit_anchors`, `update audit_anchors set object_sha256 = ''`, `update audit_anchors set anchored_at = null`,
		} {
			for _, bound := range []string{"", w.tenants[0]} {
				_, err := conn.Exec(t.Context(), `select set_config('app.tenant_id', $1, false)`, bound)
				require.NoError(t, err)
				_, err = conn.Exec(t.Context(), sql)
				var pg *pgconn.PgError
				if err == nil && role == "owner" && strings.HasPrefix(sql, "insert") && bound == "" {
					continue // it sees no row to begin with
				}
				require.ErrorAs(t, err, &pg, "%s: %s", role, sql)
				require.Contains(t, []string{"42501", "APL02"}, pg.Code, "%s: %s: %v", role, sql, err)
			}
		}
	}
	reader, app := w.db.Connect(t, w.db.ReaderURL), w.db.Connect(t, w.db.AppURL)
	for _, sql := range []string{`update audit_outbox set state = 'pending'`, `delete from audit_outbox`, `update audit_heads set length = 1`, `update audit_ledger set open_cadence = 1`} {
		for _, conn := range []*pgx.Conn{reader, app} {
			_, err := conn.Exec(t.Context(), sql)
			require.True(t, postgres.IsDenied(err), "%s: %v", sql, err)
		}
	}
	w.consistent()
}

// Watch tells of what is wrong, and writes nothing.
func TestWatch(t *testing.T) {
	w := newWorld(t, 1)
	lines := captured(t)
	watch := func() string {
		require.NoError(t, w.ledger(func(c *ledger.Config) { c.Signer, c.Key, c.Origin = nil, nil, "" }).Watch(t.Context()))
		return lines()
	}
	require.NotContains(t, watch(), "level=ERROR", "nothing yet")
	w.recordAll(2)
	w.drain()
	w.anchor()
	_ = lines()
	out := watch()
	require.NotContains(t, out, "level=ERROR")
	for _, name := range []string{"audit.pending", "audit.pending.age", "audit.quarantined", "audit.beacon.age", "audit.anchor.lateness"} {
		require.Contains(t, out, "msg=metric "+name+"=0")
	}

	w.recordAll(1)
	w.pass(10 * time.Minute)
	require.Contains(t, watch(), "events are not being drained")
	w.drain()
	w.super(`update audit_heads set beaconed = 0`)
	w.pass(10 * time.Minute)
	require.Contains(t, watch(), "no beacon tells of the newest events")
	w.super(`update audit_heads set beaconed = length`)
	w.pass(interval)
	require.Contains(t, watch(), "anchors are not being published")
	require.NoError(t, w.ledger().PublishAnchor(t.Context()))
	w.forge(w.tenants[0], event(w.tenants[0]).EventID, "{}", []byte("no MAC"))
	w.drain()
	require.Contains(t, watch(), "events are in quarantine")

	w.super(`update audit_ledger set beacon_sha256 = 'another'`)
	require.Contains(t, watch(), "it has other bytes than were written")
	w.super(`update audit_ledger set beacon_number = 99`)
	require.Contains(t, watch(), "it is gone")
	w.in("audit-2")
	for i, key := range slices.Backward([]string{"anchors/cadence-000000000002.json"}) {
		from := store(w.endpoint).In("audit")
		text, err := from.Get(t.Context(), key, 1<<20)
		require.NoError(t, err, fmt.Sprint(i))
		_, err = w.bucket.Put(t.Context(), key, strings.NewReader(string(text)), object.PutOptions{})
		require.NoError(t, err)
	}
	require.Contains(t, watch(), "it is not locked")
}
