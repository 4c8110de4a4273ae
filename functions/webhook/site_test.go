package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	routines "github.com/agentplatform/agentplatform/functions/routine"
	functions "github.com/agentplatform/agentplatform/functions/webhook"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/invoke"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/turn"
	"github.com/agentplatform/agentplatform/pkg/webhook"
	"github.com/agentplatform/agentplatform/schema"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type fields = map[string]any

// table is what the manifest calls.
var table = map[string]handler.Constructor{
	"list-webhooks":      functions.ListWebhooks,
	"get-webhook":        functions.GetWebhook,
	"create-webhook":     functions.CreateWebhook,
	"update-webhook":     functions.UpdateWebhook,
	"delete-webhook":     functions.DeleteWebhook,
	"list-webhook-runs":  functions.ListWebhookRuns,
	"get-webhook-run":    functions.GetWebhookRun,
	"test-webhook":       functions.TestWebhook,
	"invoke-webhook":     functions.InvokeWebhook,
	"poll-webhook-run":   functions.PollWebhookRun,
	"sweep-webhook-keys": functions.SweepWebhookKeys,
	"start-run":          routines.StartRun,
}

// site is a tenant, with its admin as the caller, and one instance of each function.
type site struct {
	pgtest.World
	t     testing.TB
	p     *handlertest.Platform
	rest  *handlertest.REST
	admin tenant.Claims
	super func() *pgx.Conn
}

func newSite(t testing.TB) *site {
	t.Helper()
	p := handlertest.New(t)
	return openSite(t, p, p.REST(t, table), "acme")
}

func openSite(t testing.TB, p *handlertest.Platform, rest *handlertest.REST, slug string) *site {
	t.Helper()
	w := p.DB.World(t, slug)
	return &site{w, t, p, rest, handlertest.Claims(w, tenant.Admin), sync.OnceValue(func() *pgx.Conn { return p.DB.Superuser(t) })}
}

// neighbour is another tenant of the same platform.
func (s *site) neighbour(slug string) *site {
	s.t.Helper()
	return openSite(s.t, s.p, s.rest, slug)
}

// ask calls the administration as the site's admin. Headers come in pairs of name and value.
func (s *site) ask(method, path string, body any, headers ...string) handlertest.Answer {
	s.t.Helper()
	return s.rest.Do(s.t, handlertest.RESTCall{Method: method, Path: path, Claims: s.admin, Header: pairs(headers), Body: body})
}

// call invokes a webhook.
func (s *site) call(id, token string, body any, headers ...string) handlertest.Answer {
	s.t.Helper()
	return s.rest.Do(s.t, handlertest.RESTCall{Method: "POST", Path: "/webhooks/" + id, Bearer: token, Header: pairs(headers), Body: body})
}

// poll asks how far a run is, as whoever has the token.
func (s *site) poll(id, runID, token string) handlertest.Answer {
	s.t.Helper()
	return s.rest.Do(s.t, handlertest.RESTCall{Method: "GET", Path: "/webhooks/" + id + "/runs/" + runID, Bearer: token})
}

func pairs(headers []string) map[string]string {
	all := map[string]string{}
	for i := 0; i+1 < len(headers); i += 2 {
		all[headers[i]] = headers[i+1]
	}
	return all
}

// hook makes a webhook of the site's agent, with changes.
func (s *site) hook(changes ...fields) webhook.Webhook {
	s.t.Helper()
	body := fields{"name": "orders", "agent_id": s.AgentID}
	for _, c := range changes {
		maps.Copy(body, c)
	}
	return read[webhook.Webhook](s.t, 201, s.ask("POST", "/api/webhooks", body))
}

// get is a webhook as it is now.
func (s *site) get(id string) webhook.Webhook {
	s.t.Helper()
	return read[webhook.Webhook](s.t, 200, s.ask("GET", "/api/webhooks/"+id, nil))
}

// runs are a webhook's runs, newest first.
func (s *site) runs(id string) []turn.Run {
	s.t.Helper()
	return read[handler.List[turn.Run]](s.t, 200, s.ask("GET", "/api/webhooks/"+id+"/runs?limit=100", nil)).Items
}

// accepted invokes a webhook that takes the call.
func (s *site) accepted(w webhook.Webhook, body any, headers ...string) webhook.Invoked {
	s.t.Helper()
	return read[webhook.Invoked](s.t, 202, s.call(w.ID, w.Token, body, headers...))
}

// change is SQL that no policy binds.
func (s *site) change(sql string, args ...any) {
	s.t.Helper()
	_, err := s.super().Exec(s.t.Context(), sql, args...)
	require.NoError(s.t, err)
}

// suspend takes the agent away from turns.
func (s *site) suspend(status string) {
	s.t.Helper()
	s.change(`update agents set status = $2 where id = $1`, s.AgentID, status)
}

// rows counts the rows of every table, to see what an operation left behind.
func (s *site) rows() map[string]int {
	s.t.Helper()
	counts := map[string]int{}
	for _, name := range s.tables() {
		var n int
		require.NoError(s.t, s.super().QueryRow(s.t.Context(), `select count(*) from `+name).Scan(&n))
		counts[name] = n
	}
	return counts
}

func (s *site) tables() []string {
	s.t.Helper()
	return column[string](s, `select quote_ident(tablename) from pg_tables where schemaname = 'public' order by 1`)
}

func column[T any](s *site, sql string, args ...any) []T {
	s.t.Helper()
	rows, err := s.super().Query(s.t.Context(), sql, args...)
	require.NoError(s.t, err)
	list, err := pgx.CollectRows(rows, pgx.RowTo[T])
	require.NoError(s.t, err)
	return list
}

// read is the body of an answer of this status.
func read[T any](t testing.TB, status int, a handlertest.Answer) (v T) {
	t.Helper()
	require.Equal(t, status, a.Status, "%s", a.Body)
	a.Into(t, &v)
	return v
}

// problem is what an error is told by.
type problem struct {
	Status    int    `json:"status"`
	Title     string `json:"title"`
	Detail    string `json:"detail"`
	Instance  string `json:"instance"`
	ErrorType string `json:"errorType"`
}

// refused is the problem of an answer of this status and type.
func refused(t testing.TB, status int, errorType string, a handlertest.Answer) problem {
	t.Helper()
	require.Equal(t, status, a.Status, "%s", a.Body)
	require.Equal(t, "application/problem+json", a.Header.Get("Content-Type"))
	var p problem
	a.Into(t, &p)
	require.Equal(t, status, p.Status)
	require.Equal(t, errorType, p.ErrorType)
	return p
}

// never is an id that nothing has.
func never() string { return ident.New() }

// with is the table with another function of this name.
func with(name string, constructor handler.Constructor) map[string]handler.Constructor {
	changed := maps.Clone(table)
	changed[name] = constructor
	return changed
}

// lossy is InvokeWebhook with a queue that takes nothing.
func lossy(t testing.TB) handler.Constructor { return reaching(t, down{}) }

// reaching is an invoke-webhook that calls those functions, and reaches no queue.
func reaching(t testing.TB, called invoke.Caller) handler.Constructor {
	t.Helper()
	rows, err := manifest.Parse(schema.Routes)
	require.NoError(t, err)
	row, ok := rows.Row("invoke-webhook")
	require.True(t, ok)
	return func(env *handler.Env) lambda.Handler {
		return functions.InvokeWebhook(handler.NewEnv(row, &handler.Ports{DB: env.DB, Invoke: func() invoke.Invoker { return down{} }, Call: func() invoke.Caller { return called }}))
	}
}

type down struct{}

func (down) Invoke(context.Context, string, any) error { return errors.New("the queue is down") }

func (down) Call(context.Context, string, []byte) ([]byte, error) {
	return nil, errors.New("the functions are down")
}

// stuck are functions that do not answer.
type stuck struct{}

func (stuck) Call(ctx context.Context, _ string, _ []byte) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// sweep runs what the clock runs.
func (s *site) sweep() error {
	_, err := functions.SweepWebhookKeys(s.p.Env(s.t, "sweep-webhook-keys")).Invoke(s.t.Context(), []byte(`{}`))
	return err
}

// compact is JSON without what stands between its tokens.
func compact(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, json.Compact(&b, []byte(text)))
	return b.String()
}

// text is v as JSON.
func text(t testing.TB, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return string(raw)
}

func long(n int) string { return strings.Repeat("x", n) }
