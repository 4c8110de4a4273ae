package compliance_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/functions/compliance"
	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/canonical"
	"github.com/agentplatform/agentplatform/pkg/audit/outbox"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/handler/openapitest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
)

// runtime is an agent runtime that emits for the world of acme.
type runtime struct {
	*handlertest.Platform
	pgtest.World
	threadUUID string
	emit       lambda.Handler
}

func newRuntime(t testing.TB) runtime {
	p := handlertest.New(t)
	r := runtime{Platform: p, World: p.DB.World(t, "acme"), threadUUID: ident.New(), emit: compliance.EmitEvent(p.Env(t, "emit-event"))}
	require.NoError(t, p.DB.App.InTenant(t.Context(), r.TenantID, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `insert into threads (tenant_id, uuid, prefix, number, channel, agent_id, space_id) values ($1, $2, 'CHAT', 1, 'CHAT', $3, $4)`,
			r.TenantID, r.threadUUID, r.AgentID, r.SpaceID)
		return err
	}))
	return r
}

// body is a request body with every member, some of them changed; a nil takes one out.
func (r runtime) body(changes map[string]any) map[string]any {
	b := map[string]any{"event_id": ident.New(), "tenant_id": r.TenantID, "occurred_at": ident.Now(), "actor": r.AgentID, "actor_type": "agent", "event_type": "agent.skills_changed",
		"payload": map[string]any{"agentId": r.AgentID, "addedSkills": []string{"search"}, "note": "not listed"}, "agent_id": r.AgentID, "thread_id": "CHAT-1"}
	maps.Copy(b, changes)
	maps.DeleteFunc(b, func(_ string, v any) bool { return v == nil })
	return b
}

func (r runtime) post(t testing.TB, body any, change ...func(e *events.APIGatewayV2HTTPRequest)) (status int, answer map[string]any, response events.APIGatewayV2HTTPResponse) {
	t.Helper()
	text, ok := body.(string)
	if !ok {
		raw, err := json.Marshal(body)
		require.NoError(t, err)
		text = string(raw)
	}
	e := events.APIGatewayV2HTTPRequest{Version: "2.0", RouteKey: "POST /api/compliance/events", RawPath: "/api/compliance/events", Body: text,
		Headers: map[string]string{"authorization": "Bearer " + handlertest.APISecret, "content-type": "application/json"}}
	e.RequestContext.RequestID = "req-" + ident.New()
	if !utf8.ValidString(text) { // JSON would not carry it
		e.Body, e.IsBase64Encoded = base64.StdEncoding.EncodeToString([]byte(text)), true
	}
	for _, c := range change {
		c(&e)
	}
	payload, err := json.Marshal(e)
	require.NoError(t, err)
	raw, err := r.emit.Invoke(context.WithoutCancel(t.Context()), payload)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &response))
	require.NoError(t, json.Unmarshal([]byte(response.Body), &answer), response.Body)
	require.Equal(t, e.RequestContext.RequestID, response.Headers["x-request-id"])
	check(t, e, response)
	return response.StatusCode, answer, response
}

// check holds the exchange to the contract.
func check(t testing.TB, e events.APIGatewayV2HTTPRequest, response events.APIGatewayV2HTTPResponse) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.agentplatform.test"+e.RawPath, http.NoBody)
	require.NoError(t, err)
	for name, value := range e.Headers {
		request.Header.Set(name, value)
	}
	body, header := []byte(e.Body), http.Header{}
	if e.IsBase64Encoded {
		body, err = base64.StdEncoding.DecodeString(e.Body)
		require.NoError(t, err)
	}
	for name, value := range response.Headers {
		header.Set(name, value)
	}
	openapitest.New(t).Check(t, request, body, response.StatusCode, header, []byte(response.Body))
}

// envelopes are the pending events' texts.
func (r runtime) envelopes(t testing.TB) []string {
	t.Helper()
	rows, err := r.DB.Superuser(t).Query(t.Context(), `select envelope from audit_outbox order by position`)
	require.NoError(t, err)
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return list
}

func TestEmitEvent(t *testing.T) {
	r := newRuntime(t)
	said := r.body(nil)
	status, answer, response := r.post(t, said)
	require.Equal(t, 201, status, response.Body)
	texts := r.envelopes(t)
	require.Len(t, texts, 1)
	require.Equal(t, map[string]any{"event_id": said["event_id"], "receipt": audit.Receipt(audit.MAC([]byte(handlertest.EmissionKey), []byte(texts[0])))}, answer)
	require.Equal(t, []string{"drain-outbox"}, r.Invoked())

	env, err := audit.ParseEnvelope([]byte(texts[0]))
	require.NoError(t, err)
	require.Equal(t, audit.Envelope{EventID: said["event_id"].(string), TenantID: r.TenantID, OccurredAt: said["occurred_at"].(ident.Time), Actor: r.AgentID, ActorType: audit.ActorAgent,
		Source: audit.SourceRuntime, Type: audit.AgentSkillsChanged, ThreadID: r.threadUUID, AgentID: r.AgentID, RequestID: response.Headers["x-request-id"],
		Payload: []byte(`{"addedSkills":["search"],"agentId":"` + r.AgentID + `"}`), RedactedFields: []string{"note"}, SchemaVersion: 1}, env)

	// Again, as the same JSON value in other bytes, and in base64.
	raw, err := json.MarshalIndent(said, "", "\t")
	require.NoError(t, err)
	status, again, response := r.post(t, string(raw), func(e *events.APIGatewayV2HTTPRequest) {
		e.Body, e.IsBase64Encoded = base64.StdEncoding.EncodeToString([]byte(e.Body)), true
	})
	require.Equal(t, 200, status)
	require.Equal(t, answer, again)
	require.Equal(t, "application/json", response.Headers["content-type"])

	// The same id with other words, also such that are not kept.
	for member, other := range map[string]any{"actor": "other", "payload": map[string]any{"note": "another"}, "event_type": "agent.created", "thread_id": nil} {
		changed := maps.Clone(said)
		if changed[member] = other; other == nil {
			delete(changed, member)
		}
		status, answer, _ = r.post(t, changed)
		require.Equal(t, 409, status, member)
		require.Equal(t, "ValidationError", answer["errorType"])
	}
	other := r.DB.World(t, "globex")
	status, _, _ = r.post(t, r.body(map[string]any{"event_id": said["event_id"], "tenant_id": other.TenantID, "agent_id": nil, "thread_id": nil}))
	require.Equal(t, 409, status, "another tenant's")
	require.Equal(t, texts, r.envelopes(t))
	require.Equal(t, []string{"drain-outbox"}, r.Invoked())

	status, _, _ = r.post(t, r.body(map[string]any{"agent_id": nil, "thread_id": nil, "actor_type": "system", "payload": map[string]any{}}))
	require.Equal(t, 201, status, "agent and thread may be left out")
}

func TestEmitEventRefuses(t *testing.T) {
	r := newRuntime(t)
	other := r.DB.World(t, "globex")
	in := func(d time.Duration) ident.Time { return ident.Time{Time: time.Now().UTC().Add(d)} }
	for name, c := range map[string]struct {
		body   any
		detail string
	}{
		"no JSON":           {`{"event_id":`, "byte 12"},
		"no object":         {`[]`, "must be a JSON object"},
		"two objects":       {`{} {}`, "byte 3"},
		"a name twice":      {`{"event_id":"a","event_id":"a"}`, "name occurs twice"},
		"invalid UTF-8":     {"{\"actor\":\"\xff\"}", "invalid UTF-8"},
		"half a surrogate":  {`{"actor":"\ud800"}`, "surrogate"},
		"another member":    {r.body(map[string]any{"source": "graphql"}), `"source"`},
		"another spelling":  {r.body(map[string]any{"Actor": "a"}), `"Actor"`},
		"a number":          {r.body(map[string]any{"actor": 7}), "actor must not be a JSON number"},
		"no event_id":       {r.body(map[string]any{"event_id": nil}), "event_id is missing"},
		"UUIDv4":            {r.body(map[string]any{"event_id": "7d444840-9dc0-41d1-b245-5ffdce74fad2"}), "event_id must be"},
		"upper case":        {r.body(map[string]any{"event_id": strings.ToUpper(ident.New())}), "event_id must be"},
		"no tenant_id":      {r.body(map[string]any{"tenant_id": nil}), "tenant_id must be"},
		"a slug":            {r.body(map[string]any{"tenant_id": "acme"}), "tenant_id must be"},
		"no such tenant":    {r.body(map[string]any{"tenant_id": ident.New()}), "tenant_id names no tenant"},
		"no time":           {r.body(map[string]any{"occurred_at": nil}), "occurred_at is missing"},
		"no date":           {r.body(map[string]any{"occurred_at": "yesterday"}), "not an instant"},
		"too old":           {r.body(map[string]any{"occurred_at": in(-25 * time.Hour)}), "last 24 hours"},
		"too new":           {r.body(map[string]any{"occurred_at": in(6 * time.Minute)}), "5 minutes ahead"},
		"no actor":          {r.body(map[string]any{"actor": nil}), "actor is missing"},
		"long actor":        {r.body(map[string]any{"actor": strings.Repeat("a", 201)}), "actor is longer"},
		"no actor_type":     {r.body(map[string]any{"actor_type": nil}), "actor_type must be"},
		"other actor_type":  {r.body(map[string]any{"actor_type": "robot"}), "actor_type must be"},
		"no type":           {r.body(map[string]any{"event_type": nil}), "event_type is not"},
		"reserved type":     {r.body(map[string]any{"event_type": "policy.blocked"}), "policy.blocked is reserved"},
		"unknown type":      {r.body(map[string]any{"event_type": "agent.renamed"}), "event_type is not"},
		"no payload":        {r.body(map[string]any{"payload": nil}), "payload is missing"},
		"payload of text":   {r.body(map[string]any{"payload": "{}"}), "payload must not be a JSON string"},
		"a fraction":        {r.body(map[string]any{"payload": map[string]any{"agentId": 0.5}}), "fraction"},
		"no such agent":     {r.body(map[string]any{"agent_id": ident.New()}), "agent_id names no agent"},
		"another's agent":   {r.body(map[string]any{"agent_id": other.AgentID}), "agent_id names no agent"},
		"no agent id":       {r.body(map[string]any{"agent_id": "Ada"}), "agent_id must be"},
		"empty agent id":    {r.body(map[string]any{"agent_id": ""}), "agent_id is missing or empty"},
		"no such thread":    {r.body(map[string]any{"thread_id": "CHAT-2"}), "thread_id names no thread"},
		"a thread's UUID":   {r.body(map[string]any{"thread_id": r.threadUUID}), "<PREFIX>-<number>"},
		"another's thread":  {r.body(map[string]any{"tenant_id": other.TenantID, "agent_id": nil}), "thread_id names no thread"},
		"and another agent": {r.body(map[string]any{"tenant_id": other.TenantID, "thread_id": nil}), "agent_id names no agent"},
	} {
		status, answer, response := r.post(t, c.body)
		require.Equal(t, 400, status, "%s: %s", name, response.Body)
		require.Contains(t, answer["detail"], c.detail, name)
		require.Equal(t, "ValidationError", answer["errorType"], name)
		require.Equal(t, "/api/compliance/events", answer["instance"], name)
		require.Equal(t, "application/problem+json", response.Headers["content-type"], name)
	}
	for name, c := range map[string]struct {
		change func(e *events.APIGatewayV2HTTPRequest)
		status int
	}{
		"no secret":    {func(e *events.APIGatewayV2HTTPRequest) { delete(e.Headers, "authorization") }, 401},
		"wrong secret": {func(e *events.APIGatewayV2HTTPRequest) { e.Headers["authorization"] += "x" }, 401},
		"half a secret": {func(e *events.APIGatewayV2HTTPRequest) {
			e.Headers["authorization"] = "Bearer " + handlertest.APISecret[:20]
		}, 401},
		"no scheme": {func(e *events.APIGatewayV2HTTPRequest) { e.Headers["authorization"] = handlertest.APISecret }, 401},
		"401 comes first": {func(e *events.APIGatewayV2HTTPRequest) {
			e.Headers["authorization"], e.Body = "Bearer x", strings.Repeat("x", handler.MaxBody+1)
		}, 401},
		"too large": {func(e *events.APIGatewayV2HTTPRequest) { e.Body += strings.Repeat(" ", handler.MaxBody) }, 413},
		"not JSON":  {func(e *events.APIGatewayV2HTTPRequest) { e.Headers["content-type"] = "text/plain" }, 415},
	} {
		status, answer, response := r.post(t, r.body(nil), c.change)
		require.Equal(t, c.status, status, name)
		require.Equal(t, "application/problem+json", response.Headers["content-type"], name)
		require.EqualValues(t, c.status, answer["status"], name)
	}
	require.Empty(t, r.envelopes(t))
	require.Empty(t, r.Invoked())
}

// What was taken in time is answered the same way when it is asked again too late.
func TestEmitEventRepeatsAfterItsTime(t *testing.T) {
	r := newRuntime(t)
	occurred := ident.Time{Time: time.Now().UTC().Add(-25 * time.Hour).Truncate(time.Microsecond)}
	said := r.body(map[string]any{"occurred_at": occurred})
	status, _, _ := r.post(t, said)
	require.Equal(t, 400, status)

	raw, err := json.Marshal(said)
	require.NoError(t, err)
	body, err := canonical.Transform(nil, raw)
	require.NoError(t, err)
	hash := sha256.Sum256(body)
	box, receipt := outbox.New(outbox.Config{Key: []byte(handlertest.EmissionKey)}), ""
	require.NoError(t, box.InTenant(t.Context(), r.DB.App, r.TenantID, func(tx pgx.Tx) (err error) { // as a day ago
		receipt, _, err = box.RecordOnce(t.Context(), tx, audit.Event{EventID: said["event_id"].(string), TenantID: r.TenantID, OccurredAt: occurred, Actor: r.AgentID,
			ActorType: audit.ActorAgent, Source: audit.SourceRuntime, Type: audit.AgentSkillsChanged}, hash[:])
		return err
	}))
	status, answer, _ := r.post(t, said)
	require.Equal(t, 200, status)
	require.Equal(t, receipt, answer["receipt"])
	said["actor"] = "other"
	status, _, _ = r.post(t, said)
	require.Equal(t, 409, status)
}

func TestEmitEventOnceAmongConcurrentCalls(t *testing.T) {
	const callers = 8
	r := newRuntime(t)
	said := r.body(nil)
	statuses, receipts := make([]int, callers), make([]any, callers)
	start := make(chan struct{})
	var calling sync.WaitGroup
	for i := range callers {
		calling.Go(func() {
			<-start
			status, answer, _ := r.post(t, said)
			statuses[i], receipts[i] = status, answer["receipt"]
		})
	}
	close(start)
	calling.Wait()
	counts := map[int]int{}
	for i := range callers {
		counts[statuses[i]]++
		require.Equal(t, receipts[0], receipts[i])
	}
	require.Equal(t, map[int]int{201: 1, 200: callers - 1}, counts)
	require.Len(t, r.envelopes(t), 1)
}

// Whatever a caller puts where, neither envelope nor log shows what no rule lists, nor a secret.
func TestEmitEventTellsNobodyWhatIsNotListed(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	t.Cleanup(func() { slog.SetDefault(before) })
	r := newRuntime(t)
	const hidden, secret, token = "unlisted-value", "hunter2hunter2", "ghp_" + "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1"
	hostile := map[string]any{"ssn-" + token: hidden, "prompt\n\x1b[2J": []any{hidden, map[string]any{hidden: hidden}}, "agentId": "password=" + secret + "\x00\nlevel=ERROR forged",
		"addedSkills": []any{map[string]any{"inner": hidden}}, "removedSkills": []string{"Bearer " + secret, "\u0085" + token}}
	for i := range 100 {
		hostile[fmt.Sprintf("field-%d-%s", i, strings.Repeat("x", 200))] = hidden
	}
	status, _, response := r.post(t, r.body(map[string]any{"payload": hostile, "actor": "who token=" + secret + "\nx"}))
	require.Equal(t, 201, status, response.Body)
	r.post(t, r.body(map[string]any{"payload": hostile, hidden: 1}))                             // 400
	r.post(t, r.body(map[string]any{"payload": hostile, "event_type": hidden}))                  // 400
	r.post(t, r.body(map[string]any{"payload": hostile, "agent_id": ident.New()}))               // 400
	r.post(t, r.body(map[string]any{"payload": hostile, "thread_id": hidden}))                   // 400
	r.post(t, r.body(map[string]any{"payload": hostile, "actor": strings.Repeat(hidden, 1000)})) // 400

	// A database that does not take it: its error goes to the log, the event does not.
	_, err := r.DB.Superuser(t).Exec(t.Context(), `alter table audit_outbox add constraint none check (false) not valid`)
	require.NoError(t, err)
	status, answer, _ := r.post(t, r.body(map[string]any{"payload": hostile}))
	require.Equal(t, 500, status)
	require.Contains(t, answer["detail"], "internal error (request req-")
	require.Contains(t, log.String(), "request failed")

	texts := r.envelopes(t)
	require.Len(t, texts, 1)
	env, err := audit.ParseEnvelope([]byte(texts[0]))
	require.NoError(t, err)
	require.Len(t, env.RedactedFields, 50)
	require.Equal(t, `{"agentId":"[redacted]level=ERROR forged","removedSkills":["[redacted]","[redacted]"]}`, string(env.Payload))
	for _, text := range []string{texts[0], log.String()} {
		for _, word := range []string{hidden, secret, token, "\\u0000", "\\u001b", strings.Repeat("x", 70)} {
			require.NotContains(t, text, word)
		}
	}
}
