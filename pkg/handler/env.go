// Package handler stands between the platform's functions and whatever calls them.
//
// A function is made by a constructor `func Name(env *handler.Env) lambda.Handler`, the same for every trigger. It takes what it needs from
// the Env, which refuses what the function's manifest row does not declare, and wraps its operation by the adapter of its trigger:
// Resolver, Batch (GraphQL), REST (HTTP), Task (asynchronous invoke), Call (of a function that waits), Schedule, State (state machine). Adapters decode, put the caller into the context and map
// errors, once, as their last step.
package handler

import (
	"context"
	"crypto/ecdsa"
	"fmt"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/agentcore"
	"github.com/agentplatform/agentplatform/pkg/audit/outbox"
	"github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/egress"
	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/identity"
	"github.com/agentplatform/agentplatform/pkg/invoke"
	"github.com/agentplatform/agentplatform/pkg/mail"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/push"
	"github.com/agentplatform/agentplatform/pkg/sandbox"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/sign"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// Constructor makes a function.
type Constructor = func(env *Env) lambda.Handler

// Ports are the technologies behind the needs. Each is opened when the first function asks for it.
type Ports struct {
	DB                 func() *postgres.DB    // as the role that row-level security binds
	Reader             func() *postgres.DB    // as the compliance reader
	Ledger             func() *postgres.DB    // as the ledger's one writer
	Owner              func() postgres.Config // how to connect as the database's owner
	Model              func() model.Model
	Guardrail          func() guardrail.Guard
	Publish            func() publish.Publisher
	Invoke             func() invoke.Invoker
	Call               func() invoke.Caller
	Mail               func() *mail.Mailer
	MailFrom           func() string         // nil: as empty
	MailDomain         func() string         // nil: as empty
	Received           func() *object.Bucket // the mails that came in, under in/
	Push               func() *push.Pusher
	Runtimes           func() agentcore.Runtimes
	Sandbox            func() sandbox.Sandbox
	ToolSecrets        func() secret.Store
	IntegrationSecrets func() secret.Store
	ConnectionSecrets  func() secret.Store
	Clock              func() clock.Clock
	Workflow           func() workflow.Engine
	FunctionName       func(name string) string // the name in the cloud of a function of the manifest
	Egress             func() egress.Config     // nil: as the zero Config has it
	Operators          func() tenant.Operators
	PageKey            func() page.Key
	EmissionKey        func() []byte
	Sign               func() sign.Signer
	Anchoring          func() Anchoring
	Audit              func() *object.Bucket // the write-once one
	Exports            func() *object.Bucket
	Identity           func() identity.Directory
	APISecret          func() string
	DefaultModel       func() string
	Signal             func(point string) // tests only: see turn.Runner
	// KnowledgePassword is the managed knowledge base's, as it is now; nil or empty: there is no knowledge base.
	KnowledgePassword func() string
}

// Env gives one function what its manifest row declares.
type Env struct {
	row   manifest.Row
	ports *Ports
}

// NewEnv is the Env of the function in this row.
func NewEnv(row manifest.Row, ports *Ports) *Env { return &Env{row, ports} }

// need panics where code and manifest differ: at the start of the function, so that neither can drift.
func (e *Env) need(word string) {
	if !e.row.Has(word) {
		panic(fmt.Sprintf("function %s uses %q, which its row in routes.json does not declare", e.row.Name, word))
	}
}

// DB is the database, as the role that row-level security binds (need "db").
func (e *Env) DB() *postgres.DB {
	e.need("db")
	return e.ports.DB()
}

// Reader is the database, as the compliance reader (need "db:reader").
func (e *Env) Reader() *postgres.DB {
	e.need("db:reader")
	return e.ports.Reader()
}

// Ledger is the database, as the ledger's one writer (need "db:ledger").
func (e *Env) Ledger() *postgres.DB {
	e.need("db:ledger")
	return e.ports.Ledger()
}

// Owner is how to connect to the database as its owner, for migrations (need "db:owner").
func (e *Env) Owner() postgres.Config {
	e.need("db:owner")
	return e.ports.Owner()
}

// KnowledgePassword is the password of the managed knowledge base's role, as it is now; empty: there is no knowledge base (need "db:owner").
func (e *Env) KnowledgePassword() string {
	e.need("db:owner")
	if e.ports.KnowledgePassword == nil {
		return ""
	}
	return e.ports.KnowledgePassword()
}

// Model is the managed language model (need "model").
func (e *Env) Model() model.Model {
	e.need("model")
	return e.ports.Model()
}

// Guardrail checks texts by the guardrails of Amazon Bedrock; rules need nobody (need "guardrail").
func (e *Env) Guardrail() guardrail.Guard {
	e.need("guardrail")
	return e.ports.Guardrail()
}

// Publish reaches the subscribers (need "publish").
func (e *Env) Publish() publish.Publisher {
	e.need("publish")
	return e.ports.Publish()
}

// Invoke starts that function (need "invoke:<function>").
func (e *Env) Invoke(function string) func(ctx context.Context, payload any) error {
	e.need("invoke:" + function)
	invoker := e.ports.Invoke()
	return func(ctx context.Context, payload any) error { return invoker.Invoke(ctx, function, payload) }
}

// Call asks that function, one of Call's, and waits for its answer (need "invoke:<function>").
func (e *Env) Call(function string) invoke.Function {
	e.need("invoke:" + function)
	return func(ctx context.Context, payload []byte) ([]byte, error) {
		return e.ports.Call().Call(ctx, function, payload)
	}
}

// Mail sends e-mails (need "mail").
func (e *Env) Mail() *mail.Mailer {
	e.need("mail")
	return e.ports.Mail()
}

// MailFrom is the address that e-mails come from; empty: the deployment sends none (need "mail-from").
func (e *Env) MailFrom() string {
	e.need("mail-from")
	if e.ports.MailFrom == nil {
		return ""
	}
	return e.ports.MailFrom()
}

// MailDomain is the domain whose mail is received; empty: none is (need "mail-in").
func (e *Env) MailDomain() string {
	e.need("mail-in")
	if e.ports.MailDomain == nil {
		return ""
	}
	return e.ports.MailDomain()
}

// MailReader is the bucket of received mails: in/<SES's id of the mail> (need "object:mail:read").
func (e *Env) MailReader() *object.Bucket {
	e.need("object:mail:read")
	return e.ports.Received()
}

// Push sends notifications to people's devices (need "push:send").
func (e *Env) Push() *push.Pusher {
	e.need("push:send")
	return e.ports.Push()
}

// PushDevices registers people's devices, and has the push service forget them (need "push:devices").
func (e *Env) PushDevices() *push.Pusher {
	e.need("push:devices")
	return e.ports.Push()
}

// Fields calls the functions that answer the schema's fields (need "fields").
func (e *Env) Fields() invoke.Caller {
	e.need("fields")
	return e.ports.Call()
}

// Runtimes are the agent runtimes of this deployment, by selector (need "runtime").
func (e *Env) Runtimes() agentcore.Runtimes {
	e.need("runtime")
	return e.ports.Runtimes()
}

// Sandbox runs code of a model (need "sandbox").
func (e *Env) Sandbox() sandbox.Sandbox {
	e.need("sandbox")
	return e.ports.Sandbox()
}

// Clock starts tenants' schedules on time (need "clock").
func (e *Env) Clock() clock.Clock {
	e.need("clock")
	return e.ports.Clock()
}

// Machines makes and deletes state machines (need "workflow:machines").
func (e *Env) Machines() workflow.Machines {
	e.need("workflow:machines")
	return e.ports.Workflow()
}

// FunctionName is the name by which a task of a machine calls a function: that of its manifest row, as this deployment calls it (need "workflow:machines").
func (e *Env) FunctionName() func(name string) string {
	e.need("workflow:machines")
	return e.ports.FunctionName
}

// Runs starts, stops and reads runs of state machines (need "workflow:runs").
func (e *Env) Runs() workflow.Runs {
	e.need("workflow:runs")
	return e.ports.Workflow()
}

// RunReader reads runs of state machines (need "workflow:runs:read").
func (e *Env) RunReader() workflow.RunReader {
	e.need("workflow:runs:read")
	return e.ports.Workflow()
}

// Tasks answers the tasks that state machines wait for (need "workflow:tasks").
func (e *Env) Tasks() workflow.Tasks {
	e.need("workflow:tasks")
	return e.ports.Workflow()
}

// ToolSecrets are tenants' keys and tokens of tool servers (need "secret:tools").
func (e *Env) ToolSecrets() secret.Store {
	e.need("secret:tools")
	return e.ports.ToolSecrets()
}

// IntegrationSecrets are tenants' secrets of integrations (need "secret:integrations").
func (e *Env) IntegrationSecrets() secret.Store {
	e.need("secret:integrations")
	return e.ports.IntegrationSecrets()
}

// IntegrationSecretsReader reads the same (need "secret:integrations:read").
func (e *Env) IntegrationSecretsReader() secret.StoreReader {
	e.need("secret:integrations:read")
	return e.ports.IntegrationSecrets()
}

// WebhookSecrets are the signing secrets of task webhooks: a part of the same store (need "secret:webhooks").
func (e *Env) WebhookSecrets() secret.Store {
	e.need("secret:webhooks")
	return secret.Within(e.ports.IntegrationSecrets(), "webhooks")
}

// WebhookSecretsKeeper reads and puts those, and takes none away (need "secret:webhooks:keep").
func (e *Env) WebhookSecretsKeeper() secret.Store {
	e.need("secret:webhooks:keep")
	return secret.Lasting(secret.Within(e.ports.IntegrationSecrets(), "webhooks"))
}

// ConnectionSecrets are the tokens of users' connections to providers (need "secret:connections").
func (e *Env) ConnectionSecrets() secret.Store {
	e.need("secret:connections")
	return e.ports.ConnectionSecrets()
}

// Egress is how addresses that tenants name are reached (need "egress").
func (e *Env) Egress() egress.Config {
	e.need("egress")
	if e.ports.Egress == nil {
		return egress.Config{}
	}
	return e.ports.Egress()
}

// Operators are the platform operators (need "operators").
func (e *Env) Operators() tenant.Operators {
	e.need("operators")
	return e.ports.Operators()
}

// PageKey signs page tokens (need "page-key").
func (e *Env) PageKey() page.Key {
	e.need("page-key")
	return e.ports.PageKey()
}

// Outbox records audited acts and wakes the drainer (needs "audit" and "invoke:drain-outbox").
func (e *Env) Outbox() *outbox.Outbox {
	key, wake := e.EmissionKey(), e.Invoke("drain-outbox")
	return outbox.New(outbox.Config{Key: key, Wake: func(ctx context.Context) error { return wake(ctx, struct{}{}) }})
}

// EmissionKey is what audited acts are sealed with; the database never sees it (need "audit").
func (e *Env) EmissionKey() []byte {
	e.need("audit")
	return e.ports.EmissionKey()
}

// Sign signs anchors, beacons and manifests (need "sign").
func (e *Env) Sign() sign.Signer {
	e.need("sign")
	return e.ports.Sign()
}

// PublicKey is what they are verified with (need "sign:public"), for who must not sign.
func (e *Env) PublicKey() func(ctx context.Context) (*ecdsa.PublicKey, error) {
	e.need("sign:public")
	return e.ports.Sign().Public
}

// Anchoring is how anchors are made (need "anchoring").
func (e *Env) Anchoring() Anchoring {
	e.need("anchoring")
	return e.ports.Anchoring()
}

// Audit is the write-once bucket, to read and to add to (need "object:audit:append").
func (e *Env) Audit() *object.Bucket {
	e.need("object:audit:append")
	return e.ports.Audit()
}

// AuditReader is the same bucket, to read (need "object:audit:read").
func (e *Env) AuditReader() *object.Bucket {
	e.need("object:audit:read")
	return e.ports.Audit()
}

// Exports is the bucket of exports (need "object:exports:write").
func (e *Env) Exports() *object.Bucket {
	e.need("object:exports:write")
	return e.ports.Exports()
}

// ExportsReader is the same bucket, for links to what is in it (need "object:exports:read").
func (e *Env) ExportsReader() *object.Bucket {
	e.need("object:exports:read")
	return e.ports.Exports()
}

// Identity is the identity pool's users (need "identity").
func (e *Env) Identity() identity.Directory {
	e.need("identity")
	return e.ports.Identity()
}

// APISecret is the bearer token of agent runtimes (need "api-secret").
func (e *Env) APISecret() string {
	e.need("api-secret")
	return e.ports.APISecret()
}

// DefaultModel is the model id of a new tenant's template (need "default-model").
func (e *Env) DefaultModel() string {
	e.need("default-model")
	return e.ports.DefaultModel()
}

// Signal is a test's crash points; outside tests it does nothing.
func (e *Env) Signal() func(point string) {
	if e.ports.Signal == nil {
		return func(string) {}
	}
	return e.ports.Signal
}

// Build makes the functions of all rows that have a constructor.
func Build(rows manifest.Manifest, table map[string]Constructor, ports *Ports) map[string]lambda.Handler {
	built := make(map[string]lambda.Handler, len(table))
	for _, row := range rows.Rows {
		if constructor, ok := table[row.Name]; ok {
			built[row.Name] = constructor(NewEnv(row, ports))
		}
	}
	return built
}
