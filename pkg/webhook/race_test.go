package webhook_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

// Forty calls at once to four webhooks of each of two tenants: threads numbered from 1 without gaps, every call counted once.
func TestConcurrentCalls(t *testing.T) {
	w := newWorld(t)
	tenants := []*world{w, w.neighbour("globex")}
	var hooks [2][4]webhook.Webhook
	for i, tenant := range tenants {
		for j := range hooks[i] {
			hooks[i][j] = tenant.create()
		}
	}
	before := ident.Now()
	answers := w.together(80, func(i int) (webhook.Invoked, error) {
		return tenants[i%2].invoke(hooks[i%2][i/2%4].ID, "", fmt.Sprintf(`{"message":"call %d"}`, i))
	})
	after := ident.Now()
	threads := [2]map[string]bool{{}, {}}
	for i, a := range answers {
		threads[i%2][*a.ThreadID] = true
	}
	for i, tenant := range tenants {
		for n := range 40 {
			require.True(t, threads[i][fmt.Sprintf("AUTO-%d", n+1)])
		}
		for _, h := range hooks[i] {
			runs, counted := tenant.runs(h.ID), tenant.get(h.ID)
			require.Len(t, runs, 10)
			require.EqualValues(t, 10, counted.InvocationCount)
			for _, r := range runs {
				require.False(t, counted.LastInvokedAt.Before(r.CreatedAt.Time), "last_invoked_at is not behind any run")
			}
			require.False(t, counted.LastInvokedAt.Before(before.Time) || counted.LastInvokedAt.After(after.Time))
		}
	}
	require.Equal(t, rows{Runs: 80, Threads: 80, Messages: 80, Counted: 80}, w.rows())
	w.whole()
}

// The counters and the settings of a webhook are changed side by side; neither loses anything.
func TestCallsWhileSettingsChange(t *testing.T) {
	w := newWorld(t)
	hook := w.create()
	w.together(30, func(i int) (webhook.Invoked, error) {
		if i%3 == 0 {
			return webhook.Invoked{}, w.patch(hook.ID, fmt.Sprintf(`{"config":{"n%d":%d}}`, i, i))
		}
		return w.invoke(hook.ID, "", `{"message":"Hello"}`)
	})
	got := w.get(hook.ID)
	require.EqualValues(t, 20, got.InvocationCount)
	require.Len(t, got.Config, 10)
	require.Equal(t, 11, got.Version)
	w.whole()
}

// Connections die at any moment while many call. A call that was answered is whole, a call that was not is whole or was never made; and a
// caller that asks again with its key, until it is answered, has made one run.
func TestConnectionsDie(t *testing.T) {
	w := newWorld(t)
	plain := w.create()
	limited := ident.New()
	w.exec(`insert into agents (tenant_id, id, name, status, template_id, turns_per_day) values ($1, $2, 'Grace', 'active', $3, 100000)`, w.TenantID, limited, w.TemplateID)
	other := w.create(func(s *webhook.Settings) { s.AgentID = &limited })
	const callers, kills = 6, 40
	called, done := make(chan struct{}, callers), make(chan struct{})
	all, ctx := errgroup.WithContext(t.Context())
	all.Go(func() error { // kills what is in the middle of a call, every few calls
		defer close(done)
		for killed := 0; killed < kills; {
			for range 5 {
				select {
				case <-called:
				case <-ctx.Done(): // a caller has failed
					return nil
				}
			}
			var n int
			if err := w.super.QueryRow(t.Context(), `select count(pg_terminate_backend(pid)) from pg_stat_activity where usename = 'agentplatform_app' and datname = current_database() and state <> 'idle'`).Scan(&n); err != nil {
				return err
			}
			killed += n
		}
		return nil
	})
	answered, lost, keys := [callers][]string{}, [callers]int{}, [callers]int{}
	for c := range callers {
		all.Go(func() error {
			hook := []webhook.Webhook{plain, other}[c%2]
			for {
				select {
				case <-done:
					return nil
				case called <- struct{}{}:
				}
				key := fmt.Sprintf("%d-%d", c, keys[c])
				for keys[c]++; ; lost[c]++ {
					got, err := w.invoke(hook.ID, key, `{"message":"Hello"}`)
					if err == nil {
						answered[c] = append(answered[c], got.RunID)
						break
					}
					if lost[c] == 10*kills {
						return err
					}
				}
				if got, err := w.invoke(hook.ID, "", `{"message":"without a key"}`); err == nil {
					answered[c] = append(answered[c], got.RunID)
				}
			}
		})
	}
	require.NoError(t, all.Wait())
	t.Logf("%v calls with a key, %v of them made again", keys, lost)

	w.whole()
	made := 0
	for c, ids := range answered {
		made += keys[c]
		require.Equal(t, len(ids), query[int](w, `select count(*) from thread_turns where id = any($1::uuid[])`, ids))
	}
	require.Equal(t, made, w.rows().Keys)
	w.start(plain.ID, "", `{"message":"and it goes on"}`)
}

// The line is cut at each message that a call exchanges with the database, before it arrives and after. With its key the caller learns what
// became of it: one run, whenever the line was cut.
func TestLineCutAtEveryPoint(t *testing.T) {
	w := newWorld(t)
	hook := w.create()
	for _, limit := range []*int{nil, new(100_000)} {
		w.exec(`update agents set turns_per_day = $1`, limit)
		for _, answerLost := range []bool{false, true} {
			points := 0
			for at := 1; ; at++ {
				line := newLine(t, w.db.AppTCPURL, at, answerLost)
				db, err := postgres.Open(t.Context(), postgres.Config{URL: line.url, MaxConns: 1})
				require.NoError(t, err)
				require.NoError(t, db.Ping(t.Context()))
				line.arm()
				call := webhook.Invocation{WebhookID: hook.ID, Key: fmt.Sprintf("%v-%v-%d", limit != nil, answerLost, at), Payload: payload(t, `{"message":"Hello"}`)}
				_, err = webhook.Invoke(t.Context(), db, w.TenantID, call)
				db.Close()
				w.whole()
				runs := w.rows().Runs
				again, errAgain := webhook.Invoke(t.Context(), w.db.App, w.TenantID, call)
				require.NoError(t, errAgain)
				require.NotEmpty(t, again.RunID)
				w.whole()
				if err == nil {
					require.True(t, again.Deduplicated)
				}
				if again.Deduplicated {
					require.Equal(t, runs, w.rows().Runs)
				} else {
					require.Equal(t, runs+1, w.rows().Runs)
				}
				if !line.close() {
					require.NoError(t, err)
					break
				}
				points++
			}
			t.Logf("limit %v, answer lost %v: cut at each of %d points", limit != nil, answerLost, points)
			require.GreaterOrEqual(t, points, 2)
		}
	}
	require.Equal(t, w.rows().Keys, w.rows().Runs)
}

// line is a connection to the database that is cut at the client's at-th message after arm: instead of carrying it, or when its answer comes.
type line struct {
	url        string
	listener   net.Listener
	at         int
	answerLost bool
	both       sync.WaitGroup

	mu    sync.Mutex
	armed bool
	seen  int
	cut   bool
	open  []net.Conn
}

func newLine(t testing.TB, to string, at int, answerLost bool) *line {
	t.Helper()
	u, err := url.Parse(to)
	require.NoError(t, err)
	server := u.Host
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	u.Host = listener.Addr().String()
	l := &line{url: u.String(), listener: listener, at: at, answerLost: answerLost}
	l.both.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			l.carry(client, server)
		}
	})
	return l
}

func (l *line) carry(client net.Conn, to string) {
	server, err := net.Dial("tcp", to)
	if err != nil {
		client.Close()
		return
	}
	l.mu.Lock()
	l.open = append(l.open, client, server)
	l.mu.Unlock()
	end := func() { client.Close(); server.Close() }
	l.both.Go(func() {
		defer end()
		for buf := make([]byte, 1<<20); ; {
			n, err := client.Read(buf)
			if err != nil || l.due(true) {
				return
			}
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	l.both.Go(func() {
		defer end()
		for buf := make([]byte, 1<<20); ; {
			n, err := server.Read(buf)
			if err != nil || l.due(false) {
				return
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	})
}

// due reports whether the line is to be cut now: upon something from the client, or from the server.
func (l *line) due(fromClient bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.armed || l.cut {
		return false
	}
	if fromClient {
		l.seen++
	}
	l.cut = l.seen == l.at && fromClient != l.answerLost
	return l.cut
}

func (l *line) arm() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = true
}

// close ends the line and tells whether it was cut before.
func (l *line) close() (cut bool) {
	l.listener.Close()
	l.mu.Lock()
	for _, c := range l.open {
		c.Close()
	}
	l.mu.Unlock()
	l.both.Wait()
	return l.cut
}
