package task_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/task"
	webhooks "github.com/agentplatform/agentplatform/functions/webhook"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/invoke"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/task"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/webhook"
	"github.com/agentplatform/agentplatform/schema"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var table = map[string]handler.Constructor{
	"receive-task-event": functions.ReceiveTaskEvent,
	"process-task-event": functions.ProcessTaskEvent,
	"create-webhook":     webhooks.CreateWebhook,
	"update-webhook":     webhooks.UpdateWebhook,
}

const signing = "the tracker's s3cret"

// site is a tenant, and one instance of each function.
type site struct {
	pgtest.World
	t     *testing.T
	p     *handlertest.Platform
	rest  *handlertest.REST
	super *pgx.Conn
}

func newSite(t *testing.T, changed map[string]handler.Constructor) *site {
	p := handlertest.New(t)
	return &site{p.DB.World(t, "acme"), t, p, p.REST(t, changed), p.DB.Superuser(t)}
}

// hook makes a webhook of a tracker; an empty secret is none.
func (s *site) hook(provider, secret string) (w webhook.Webhook) {
	s.t.Helper()
	body := map[string]any{"name": provider, "target_type": "task", "config": map[string]any{"provider": provider}, "rate_limit": 3}
	if secret != "" {
		body["signing_secret"] = secret
	}
	answer := s.rest.Do(s.t, handlertest.RESTCall{Method: "POST", Path: "/api/webhooks", Claims: handlertest.Claims(s.World, tenant.Admin), Body: body})
	require.Equal(s.t, 201, answer.Status, "%s", answer.Body)
	answer.Into(s.t, &w)
	return w
}

func (s *site) send(provider, token, body string, headers map[string]string) handlertest.Answer {
	s.t.Helper()
	path := "/integrations/" + provider + "/webhook?token=" + token
	return s.rest.Do(s.t, handlertest.RESTCall{Method: "POST", Path: path, Header: headers, Body: body})
}

func (s *site) column(sql string, args ...any) []string {
	s.t.Helper()
	rows, err := s.super.Query(s.t.Context(), sql, args...)
	require.NoError(s.t, err)
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(s.t, err)
	return list
}

func event(provider string, n int) string {
	now := time.Now()
	switch provider {
	case "linear":
		return fmt.Sprintf(`{"type":"Issue","action":"create","organizationId":"o","createdAt":%q,"webhookTimestamp":%d,"data":{"id":"task-%d","identifier":"ENG-%d","title":"Do it"}}`,
			now.UTC().Format(time.RFC3339Nano), now.UnixMilli(), n, n)
	case "jira":
		return fmt.Sprintf(`{"webhookEvent":"jira:issue_created","timestamp":%d,"issue":{"id":"%d","key":"ENG-%d","self":"https://acme.atlassian.net/rest/api/2/issue/1","fields":{"summary":"Do it"}}}`,
			now.UnixMilli(), n, n)
	}
	return fmt.Sprintf(`{"events":[{"action":"deleted","created_at":%q,"resource":{"gid":"%d","resource_type":"task"}}]}`, now.UTC().Format(time.RFC3339Nano), n)
}

func signed(provider, secret, body string) map[string]string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(body))
	mac := hex.EncodeToString(h.Sum(nil))
	switch provider {
	case "linear":
		return map[string]string{"Linear-Signature": mac, "Linear-Delivery": ident.New()}
	case "jira":
		return map[string]string{"X-Hub-Signature": "sha256=" + mac, "X-Atlassian-Webhook-Identifier": ident.New()}
	}
	return map[string]string{"X-Hook-Signature": mac}
}

func is(t *testing.T, status int, body string, a handlertest.Answer) {
	t.Helper()
	require.Equal(t, status, a.Status, "%s", a.Body)
	require.Contains(t, string(a.Body), body)
}

// Each tracker has an address, and its own way to sign.
func TestReceiveTaskEvent(t *testing.T) {
	s := newSite(t, table)
	for i, provider := range []string{"linear", "jira", "asana"} {
		w := s.hook(provider, signing)
		body := event(provider, 1)
		is(t, 200, `{"outcome":"ok"}`, s.send(provider, w.Token, body, signed(provider, signing, body)))
		is(t, 200, `{"outcome":"duplicate"}`, s.send(provider, w.Token, body, signed(provider, signing, body)))
		other := event(provider, 2)
		a := s.send(provider, w.Token, other, signed(provider, "wrong", other))
		is(t, 401, "the delivery is not signed with the webhook's secret", a)
		is(t, 200, `{"outcome":"duplicate"}`, s.send(provider, w.Token, body, signed(provider, signing, body)))
		limit := s.send(provider, w.Token, other, signed(provider, signing, other))
		is(t, 429, "the webhook's limit of 3 calls a minute is reached", limit)
		require.Regexp(t, `^[1-9]\d?$`, limit.Header.Get("Retry-After"))
		for _, token := range []string{"", "x", strings.Repeat("x", 32), w.Token[:31], w.ID} {
			is(t, 401, "no webhook of this provider has this token", s.send(provider, token, body, signed(provider, signing, body)))
		}
		is(t, 401, "no webhook of this provider", s.send([]string{"jira", "asana", "linear"}[i], w.Token, body, signed(provider, signing, body)))
		require.Equal(t, 200, s.rest.Do(t, handlertest.RESTCall{Method: "PATCH", Path: "/api/webhooks/" + w.ID, Claims: handlertest.Claims(s.World, tenant.Admin),
			Body: map[string]any{"enabled": false}}).Status)
		is(t, 401, "not signed", s.send(provider, w.Token, body, nil))
		require.Equal(t, []string{"ok", "duplicate", "unverified", "duplicate", "rate_limited", "unverified"}, s.column(`select outcome from deliveries where webhook_id = $1 order by received_at`, w.ID))
	}
	require.Equal(t, []string{"process-task-event", "process-task-event", "process-task-event"}, s.p.Invoked())

	function := functions.ProcessTaskEvent(s.p.Env(t, "process-task-event"))
	for _, id := range s.column(`select id::text from task_events order by created_at`) {
		_, err := function.Invoke(t.Context(), []byte(`{"tenantId":"`+s.TenantID+`","eventId":"`+id+`"}`))
		require.NoError(t, err)
	}
	require.Equal(t, []string{"TASK-1 ENG-1: Do it: Somebody created ENG-1", "TASK-2 ENG-1: Do it: Somebody created ENG-1", "TASK-3 Task 1: Somebody deleted the task"},
		s.column(`select t.prefix || '-' || t.number || ' ' || t.title || ': ' || m.body from threads t join messages m on m.thread_uuid = t.uuid order by t.number`))
	published := s.p.Published()
	require.Len(t, published, 6)
	require.Equal(t, "TASK-1", published[0].(publish.NewMessage).ThreadID)
	_, err := function.Invoke(t.Context(), []byte(`{}`))
	require.NoError(t, err)
}

func TestReceiveTaskEventRefuses(t *testing.T) {
	s := newSite(t, table)
	w := s.hook("linear", "")
	is(t, 400, "the body is not what the provider sends", s.send("linear", w.Token, "x", nil))
	is(t, 413, "larger than 1048576 bytes", s.send("linear", w.Token, `"`+strings.Repeat("x", 1<<20)+`"`, nil))
	body := event("linear", 1)
	is(t, 200, "ok", s.send("linear", w.Token, body, nil))
	require.Equal(t, []string{"f"}, s.column(`select verified::text::char(1) from task_events`))
}

// A tracker switches its webhook off when it is refused again and again: what it signs is answered, and in the log.
func TestADisabledWebhook(t *testing.T) {
	s := newSite(t, table)
	signs, none := s.hook("linear", signing), s.hook("jira", "")
	_, err := s.super.Exec(t.Context(), `update webhooks set enabled = false`)
	require.NoError(t, err)
	body := event("linear", 1)
	is(t, 200, `{"outcome":"error"}`, s.send("linear", signs.Token, body, signed("linear", signing, body)))
	is(t, 401, "not signed", s.send("linear", signs.Token, body, nil))
	is(t, 403, "the webhook is disabled", s.send("jira", none.Token, event("jira", 1), nil))
	require.Equal(t, []string{"error the webhook is disabled true", "unverified the delivery is not signed with the webhook's secret false", "error the webhook is disabled false"},
		s.column(`select outcome || ' ' || error || ' ' || (body is not null)::text from deliveries order by received_at`))
	require.Empty(t, s.p.Invoked())
	require.Empty(t, s.column(`select id::text from task_events`))
}

// Asana's handshake over HTTP: the secret goes back in the header that it came in.
func TestAsanasHandshake(t *testing.T) {
	s := newSite(t, table)
	w := s.hook("asana", "")
	named := strings.Repeat("0f", 32)
	answer := s.send("asana", w.Token, "", map[string]string{"X-Hook-Secret": named})
	is(t, 200, `{"outcome":"ok"}`, answer)
	require.Equal(t, named, answer.Header.Get("X-Hook-Secret"))
	require.NotContains(t, string(answer.Body), named)
	body := event("asana", 1)
	is(t, 401, "not signed", s.send("asana", w.Token, body, nil))
	is(t, 200, "ok", s.send("asana", w.Token, body, signed("asana", named, body)))
	require.Equal(t, []string{"true"}, s.column(`select (secret_version = 1)::text from webhooks`))
}

type down struct{}

func (down) Invoke(context.Context, string, any) error { return errors.New("the queue is down") }

// A queue that takes nothing loses nothing: the tracker is answered, and the sweep finds the event.
func TestTheQueueIsDown(t *testing.T) {
	rows, err := manifest.Parse(schema.Routes)
	require.NoError(t, err)
	row, ok := rows.Row("receive-task-event")
	require.True(t, ok)
	s := newSite(t, map[string]handler.Constructor{"create-webhook": webhooks.CreateWebhook, "process-task-event": functions.ProcessTaskEvent,
		"receive-task-event": func(env *handler.Env) lambda.Handler {
			return functions.ReceiveTaskEvent(handler.NewEnv(row, &handler.Ports{DB: env.DB, IntegrationSecrets: env.WebhookSecretsKeeper, Invoke: func() invoke.Invoker { return down{} }}))
		}})
	w := s.hook("linear", signing)
	body := event("linear", 1)
	is(t, 200, "ok", s.send("linear", w.Token, body, signed("linear", signing, body)))
	_, err = s.super.Exec(t.Context(), `update task_events set next_at = now() - interval '1 second'`)
	require.NoError(t, err)
	sweep, err := json.Marshal(map[string]string{"time": "2026-01-01T00:00:00Z"}) // as a rule calls it
	require.NoError(t, err)
	_, err = functions.ProcessTaskEvent(s.p.Env(t, "process-task-event")).Invoke(t.Context(), sweep)
	require.NoError(t, err)
	require.Equal(t, []string{"done"}, s.column(`select status from task_events`))
	require.Equal(t, "process-task-event", task.Function)
}
