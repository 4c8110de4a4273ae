package task_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/connection"
	"github.com/agentplatform/agentplatform/pkg/egress"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/local/outbox"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/push"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/task"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/text"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type fields = map[string]any

const (
	back    = "https://console.example.test/connections"
	signing = "the tracker's s3cret"
	issueID = "2174add1-f7c8-44e3-bbf3-2d60b5ea8bc9"
	adaID   = "b1a5e2a0-6f0e-4b6e-9a53-3f3b1b1c0a01" // whose task it is, in the fixtures
	acmeID  = "dc844923-f9a4-40a3-825c-dea7747e57d6" // the workspace of the fixtures
	boID    = "c2b6f3b1-7a1f-4c7f-8b64-4a4c2c2d1b02" // who has done it
)

// world is a tenant with a webhook of Linear, and Linear: its authorization server and its API.
type world struct {
	pgtest.World
	t         *testing.T
	db        *pgtest.DB
	super     *pgx.Conn
	linear    *linear
	secrets   secret.Store
	tokens    secret.Store
	receiver  *task.Receiver
	processor *task.Processor
	outbox    *outbox.Outbox
	events    *events
	hook      webhook.Webhook
}

func newWorld(t *testing.T) *world {
	t.Helper()
	db := pgtest.New(t)
	w := &world{World: db.World(t, "acme"), t: t, db: db, super: db.Superuser(t), linear: newLinear(t), secrets: dir(t), tokens: dir(t), events: &events{}}
	var err error
	w.outbox, err = outbox.Open(outbox.Config{Dir: t.TempDir()})
	require.NoError(t, err)
	w.receiver, w.processor = w.process()
	w.hook = w.create("linear", signing)
	return w
}

// neighbour is another tenant of the same platform.
func (w *world) neighbour() *world {
	w.t.Helper()
	n := *w
	n.World = w.db.World(w.t, "globex")
	n.hook = n.create("linear", "the neighbour's s3cret")
	return &n
}

// process is what another process has.
func (w *world) process() (*task.Receiver, *task.Processor) {
	connections := connection.New(w.db.App, w.tokens, connection.NewClients(w.db.App, w.secrets), egress.Config{Loopback: true})
	w.t.Cleanup(connections.Close)
	return &task.Receiver{DB: w.db.App, Secrets: webhook.NewSecrets(w.db.App, w.secrets)},
		&task.Processor{DB: w.db.App, Connections: connections, Publish: w.events, Push: push.New(w.outbox)}
}

func dir(t *testing.T) secret.Store {
	store, err := secret.Dir(t.TempDir(), strings.Repeat("k", 32))
	require.NoError(t, err)
	return store
}

// create makes a webhook of a tracker; its token is whole. An empty secret is none.
func (w *world) create(provider, signed string) (made webhook.Webhook) {
	w.t.Helper()
	given := text.Patch[string]{}
	if signed != "" {
		given = set(signed)
	}
	require.NoError(w.t, w.db.App.InTenant(w.t.Context(), w.TenantID, func(tx pgx.Tx) (err error) {
		s := webhook.Settings{Name: "Tasks", TargetType: webhook.Task, Config: fields{"provider": provider}}
		if made, err = webhook.Create(w.t.Context(), tx, w.TenantID, s); err != nil {
			return err
		}
		return webhook.NewSecrets(w.db.App, w.secrets).Set(w.t.Context(), tx, &made, given)
	}))
	return made
}

// settle gives the webhook another secret, or takes it away.
func (w *world) settle(secrets *webhook.Secrets, given string) {
	w.t.Helper()
	patch := text.Patch[string]{Set: true}
	if given != "" {
		patch.Value = &given
	}
	require.NoError(w.t, w.db.App.InTenant(w.t.Context(), w.TenantID, func(tx pgx.Tx) error {
		now, err := webhook.Get(w.t.Context(), w.db.App.In(w.TenantID), w.hook.ID)
		if err != nil {
			return err
		}
		return secrets.Set(w.t.Context(), tx, &now, patch)
	}))
}

func set[T any](v T) text.Patch[T] { return text.Patch[T]{Set: true, Value: &v} }

// fixture is a delivery of Linear's as it would come now, with changes of its data.
func fixture(t testing.TB, name string, changes ...fields) fields {
	t.Helper()
	raw, err := os.ReadFile("../tracker/testdata/linear/" + name + ".json")
	require.NoError(t, err)
	var body fields
	require.NoError(t, json.Unmarshal(raw, &body))
	body["webhookTimestamp"] = time.Now().UnixMilli()
	for _, c := range changes {
		maps.Copy(body["data"].(fields), c)
	}
	return body
}

// at is a delivery of something that happened at that time.
func at(body fields, when string) fields {
	body["createdAt"] = when
	body["data"].(fields)["updatedAt"] = when
	return body
}

func encode(t testing.TB, body any) []byte {
	raw, err := json.Marshal(body)
	require.NoError(t, err)
	return raw
}

func mac(key string, body []byte) string {
	h := hmac.New(sha256.New, []byte(key))
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}

// send delivers to a webhook. Headers come in pairs.
func (w *world) send(by *task.Receiver, provider, token string, body []byte, headers ...string) (task.Received, error) {
	h := http.Header{}
	for i := 0; i+1 < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return by.Receive(w.t.Context(), task.Call{Provider: provider, Token: token, Header: h.Get, Body: func() ([]byte, error) { return body, nil }})
}

// deliver sends a delivery of Linear's, signed, with an id of its own.
func (w *world) deliver(body any) task.Received {
	w.t.Helper()
	raw := encode(w.t, body)
	got, err := w.send(w.receiver, "linear", w.hook.Token, raw, "Linear-Signature", mac(signing, raw), "Linear-Delivery", ident.New())
	require.NoError(w.t, err)
	return got
}

// happen delivers and processes.
func (w *world) happen(body any) task.Order {
	w.t.Helper()
	got := w.deliver(body)
	require.NotEmpty(w.t, got.Order.EventID)
	require.NoError(w.t, w.processor.Process(w.t.Context(), got.Order))
	return got.Order
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	_, err := w.super.Exec(w.t.Context(), sql, args...)
	require.NoError(w.t, err)
}

func query[T any](w *world, sql string, args ...any) (v T) {
	w.t.Helper()
	require.NoError(w.t, w.super.QueryRow(w.t.Context(), sql, args...).Scan(&v))
	return v
}

func column[T any](w *world, sql string, args ...any) []T {
	w.t.Helper()
	rows, err := w.super.Query(w.t.Context(), sql, args...)
	require.NoError(w.t, err)
	list, err := pgx.CollectRows(rows, pgx.RowTo[T])
	require.NoError(w.t, err)
	return list
}

// messages are what the tenant's threads say, oldest first.
func (w *world) messages() []string {
	w.t.Helper()
	return column[string](w, `select m.body from messages m join threads t on t.uuid = m.thread_uuid where t.tenant_id = $1 order by t.number, m.position`, w.TenantID)
}

// envelope is a member of the envelope of the tenant's first task.
func (w *world) envelope(member string) (v string) {
	w.t.Helper()
	return query[string](w, `select coalesce(metadata #>> array['external', 'latestEnvelope', $2], 'null') from threads where tenant_id = $1 and number = 1`, w.TenantID, member)
}

// pushes are the lines of the pushes that were sent, oldest first.
func (w *world) pushes() (lines []string) {
	w.t.Helper()
	all, _, err := w.outbox.List("", 100)
	require.NoError(w.t, err)
	for _, e := range slices.Backward(all) {
		raw, err := w.outbox.Read(e.ID)
		require.NoError(w.t, err)
		var p struct {
			Endpoint string
			Payload  struct {
				Aps struct{ Alert struct{ Title, Body string } }
			}
		}
		require.NoError(w.t, json.Unmarshal(raw, &p))
		lines = append(lines, p.Payload.Aps.Alert.Body)
	}
	return lines
}

// events are what subscribers were told.
type events struct {
	mu   sync.Mutex
	all  []publish.Event
	fail error
}

func (e *events) Publish(_ context.Context, more ...publish.Event) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fail != nil {
		return e.fail
	}
	e.all = append(e.all, more...)
	return nil
}

// user is a user of the tenant who is connected as that person, with a phone.
func (w *world) user(person string) (caller tenant.Caller, connectionID string) {
	w.t.Helper()
	config := encode(w.t, integration.Client{ClientID: w.linear.authority.ClientID, RedirectURIs: []string{back}, APIURL: w.linear.URL, AuthURL: w.linear.URL})
	owner := tenant.Caller{TenantID: w.TenantID, UserID: w.UserID, Role: tenant.Owner}
	ids := column[string](w, `select id::text from integrations where tenant_id = $1`, w.TenantID)
	if len(ids) == 0 {
		made, err := integration.Open(w.db.App, w.secrets, egress.Config{Loopback: true}).Create(w.t.Context(), owner, integration.New{Provider: integration.Linear,
			Settings: integration.Settings{Name: set("Linear"), Config: set(string(config)), Secret: set(integration.SecretGiven{Token: &w.linear.authority.ClientSecret})}}, nil)
		require.NoError(w.t, err)
		ids = []string{made.ID}
	}
	caller = tenant.Caller{TenantID: w.TenantID, UserID: ident.New(), Role: tenant.Member}
	w.exec(`insert into users (tenant_id, id, email, role) values ($1, $2, $3, 'member')`, w.TenantID, caller.UserID, caller.UserID+"@acme.test")
	w.phone(caller.UserID)
	clients := connection.NewClients(w.db.App, w.secrets)
	begun, err := clients.Start(w.t.Context(), caller, connection.Beginning{IntegrationID: ids[0], RedirectURI: back})
	require.NoError(w.t, err)
	state, code := w.linear.authority.Consent(w.t, begun.AuthorizationURL, person)
	made, err := w.processor.Connections.Complete(w.t.Context(), caller, connection.Return{State: state, Code: code})
	require.NoError(w.t, err)
	w.linear.mu.Lock()
	w.linear.asked = nil
	w.linear.mu.Unlock()
	return caller, made.ID
}

// phone gives a user a device.
func (w *world) phone(userID string) (id string) {
	w.t.Helper()
	id = ident.New()
	endpoint, err := w.outbox.Register(w.t.Context(), push.APNS, hex.EncodeToString([]byte(id)), "")
	require.NoError(w.t, err)
	w.exec(`insert into devices (tenant_id, id, user_id, platform, endpoint) values ($1, $2, $3, 'apns', $4)`, w.TenantID, id, userID, endpoint)
	return id
}
