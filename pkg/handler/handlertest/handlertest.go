// Package handlertest calls functions as their gateway does, in tests: by manifest name, with the row's Env, over a test's own database.
package handlertest

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/egress"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/identity"
	"github.com/agentplatform/agentplatform/pkg/invoke"
	"github.com/agentplatform/agentplatform/pkg/local/outbox"
	"github.com/agentplatform/agentplatform/pkg/mail"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/push"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/sign"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/workflow"
	"github.com/agentplatform/agentplatform/schema"
)

// Platform is what the functions under test find around them.
type Platform struct {
	DB    *pgtest.DB
	ports *handler.Ports
	rows  manifest.Manifest

	mu        sync.Mutex
	published []publish.Event
	invoked   []string // functions, in order
	directory Directory
	outbox    func() *outbox.Outbox
}

// Model is the default model, APISecret the runtimes' bearer token, EmissionKey the emission key, Origin the anchor log's name, MailDomain where mail comes in.
const (
	MailDomain  = "in.agents.test"
	Model       = "test.model-v1"
	APISecret   = "an API secret for tests, 32 characters"
	EmissionKey = "an emission key for tests, 32 characters"
	Origin      = "test/audit"
)

// New is a platform on a database of its own. Operators lists the platform operators' addresses.
func New(t testing.TB, operators ...string) *Platform {
	t.Helper()
	rows, err := manifest.Parse(schema.Routes)
	require.NoError(t, err)
	p := &Platform{DB: pgtest.New(t), rows: rows, outbox: sync.OnceValue(func() *outbox.Outbox {
		o, err := outbox.Open(outbox.Config{Dir: t.TempDir()})
		require.NoError(t, err)
		return o
	})}
	p.ports = &handler.Ports{
		DB:          func() *postgres.DB { return p.DB.App },
		Reader:      sync.OnceValue(func() *postgres.DB { return p.DB.Open(t, p.DB.ReaderURL) }),
		Guardrail:   func() guardrail.Guard { return nil },
		Publish:     func() publish.Publisher { return p },
		Invoke:      func() invoke.Invoker { return p },
		Operators:   func() tenant.Operators { return operators },
		PageKey:     func() page.Key { return page.Key("a key for tests, 32 characters..") },
		Ledger:      sync.OnceValue(func() *postgres.DB { return p.DB.Open(t, p.DB.LedgerURL) }),
		EmissionKey: func() []byte { return []byte(EmissionKey) },
		Sign: sync.OnceValue(func() sign.Signer {
			key, err := sign.File(filepath.Join(t.TempDir(), "key.pem"))
			require.NoError(t, err)
			return key
		}),
		Anchoring: func() handler.Anchoring {
			return handler.Anchoring{Interval: 15 * time.Minute, Retention: 400 * 24 * time.Hour, Origin: Origin}
		},
		ToolSecrets:        sync.OnceValue(func() secret.Store { return dir(t) }),
		IntegrationSecrets: sync.OnceValue(func() secret.Store { return dir(t) }),
		ConnectionSecrets:  sync.OnceValue(func() secret.Store { return dir(t) }),
		Push:               func() *push.Pusher { return push.New(p.Outbox()) },
		MailDomain:         func() string { return MailDomain },
		Received:           func() *object.Bucket { panic("no bucket: see WithReceived") },
		Egress:             func() egress.Config { return egress.Config{Loopback: true} },
		Audit:              func() *object.Bucket { panic("no bucket: see WithStore") },
		Exports:            func() *object.Bucket { panic("no bucket: see WithStore") },
		Call:               func() invoke.Caller { panic("no functions: see WithFunctions") },
		Mail:               func() *mail.Mailer { panic("no mail: see WithMail") },
		Clock:              func() clock.Clock { panic("no clock: see WithClock") },
		Workflow:           func() workflow.Engine { panic("no workflow engine: see WithWorkflow") },
		Identity:           func() identity.Directory { return &p.directory },
		APISecret:          func() string { return APISecret },
		FunctionName:       func(name string) string { return name },
		DefaultModel:       func() string { return Model },
	}
	return p
}

// WithStore gives the functions these buckets.
func (p *Platform) WithStore(audit, exports *object.Bucket) *Platform {
	p.ports.Audit = func() *object.Bucket { return audit }
	p.ports.Exports = func() *object.Bucket { return exports }
	return p
}

// dir is a store of secrets of its own.
func dir(t testing.TB) secret.Store {
	store, err := secret.Dir(t.TempDir(), "a key for tests, 32 characters..")
	require.NoError(t, err)
	return store
}

// IntegrationSecrets is the store that functions have for integrations' secrets, ConnectionSecrets the one for connections'.
func (p *Platform) IntegrationSecrets() secret.Store { return p.ports.IntegrationSecrets() }

// ConnectionSecrets see IntegrationSecrets.
func (p *Platform) ConnectionSecrets() secret.Store { return p.ports.ConnectionSecrets() }

// Outbox carries the push notifications, and keeps them.
func (p *Platform) Outbox() *outbox.Outbox { return p.outbox() }

// WithReceived gives the functions that bucket of received mails.
func (p *Platform) WithReceived(mails *object.Bucket) *Platform {
	p.ports.Received = func() *object.Bucket { return mails }
	return p
}

// WithMail has mails come from that address, and carried so.
func (p *Platform) WithMail(from string, by mail.Carrier) *Platform {
	p.ports.Mail = func() *mail.Mailer { return mail.New(by) }
	p.ports.MailFrom = func() string { return from }
	return p
}

// WithClock gives the functions that clock.
func (p *Platform) WithClock(c clock.Clock) *Platform {
	p.ports.Clock = func() clock.Clock { return c }
	return p
}

// WithWorkflow gives the functions that workflow engine.
func (p *Platform) WithWorkflow(e workflow.Engine) *Platform {
	p.ports.Workflow = func() workflow.Engine { return e }
	return p
}

// WithFunctions has functions call one another: those of the table, made when they are called.
func (p *Platform) WithFunctions(t testing.TB, table map[string]handler.Constructor) *Platform {
	p.ports.Call = func() invoke.Caller { return caller{p, t, table} }
	return p
}

type caller struct {
	*Platform
	t     testing.TB
	table map[string]handler.Constructor
}

// Call implements invoke.Caller.
func (c caller) Call(ctx context.Context, function string, payload []byte) ([]byte, error) {
	return c.table[function](c.Env(c.t, function)).Invoke(ctx, payload)
}

// Directory is the identity pool's users: it remembers what it was told, in order ("invite ada@acme.test").
func (p *Platform) Directory() *Directory { return &p.directory }

// Env is the Env of the function of that name.
func (p *Platform) Env(t testing.TB, name string) *handler.Env {
	t.Helper()
	row, ok := p.rows.Row(name)
	require.True(t, ok, name)
	return handler.NewEnv(row, p.ports)
}

// Call asks a resolver for a field and reads its data; what it refuses is the error.
func Call[R any](t testing.TB, p *Platform, name string, constructor handler.Constructor, caller tenant.Claims, args any, sources ...any) (R, *fault.Error) {
	t.Helper()
	var result R
	event := map[string]any{"field": name, "arguments": args, "claims": caller, "requestId": "test"}
	var payload any = event
	if len(sources) > 0 {
		list := make([]map[string]any, len(sources))
		for i, s := range sources {
			list[i] = map[string]any{"field": name, "arguments": args, "claims": caller, "requestId": "test", "source": s}
		}
		payload = list
	}
	body, err := json.Marshal(payload)
	require.NoError(t, err)
	raw, err := constructor(p.Env(t, name)).Invoke(t.Context(), body)
	require.NoError(t, err)
	var answers []handler.Answer
	if len(sources) == 0 {
		answers = make([]handler.Answer, 1)
		require.NoError(t, json.Unmarshal(raw, &answers[0]))
	} else {
		require.NoError(t, json.Unmarshal(raw, &answers))
	}
	data := make([]json.RawMessage, len(answers))
	for i, a := range answers {
		if a.ErrorType != "" {
			return result, fault.New(a.ErrorType, "%s", a.Message)
		}
		data[i] = a.Data
	}
	if len(sources) == 0 {
		require.NoError(t, json.Unmarshal(data[0], &result))
		return result, nil
	}
	joined, err := json.Marshal(data)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(joined, &result))
	return result, nil
}

// Claims are the token's of a user of the world, with another role if one is given.
func Claims(w pgtest.World, role tenant.Role) tenant.Claims {
	return tenant.Claims{"custom:tenant_id": w.TenantID, "custom:user_id": w.UserID, "custom:role": string(role), "email": "somebody@acme.test", "email_verified": true}
}

// Publish implements publish.Publisher.
func (p *Platform) Publish(_ context.Context, events ...publish.Event) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.published = append(p.published, events...)
	return nil
}

// Invoke implements invoke.Invoker: it only remembers.
func (p *Platform) Invoke(_ context.Context, function string, _ any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.invoked = append(p.invoked, function)
	return nil
}

// Published are the events so far.
func (p *Platform) Published() []publish.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]publish.Event(nil), p.published...)
}

// Invoked are the functions that were started so far.
func (p *Platform) Invoked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.invoked...)
}
