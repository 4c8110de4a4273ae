// Package manifest reads schema/routes.json: for each function, what calls it and what it needs.
//
// Terraform, the local gateway and the HTTP GraphQL function read the same file; test/layout holds it against the code.
package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Row is one function.
type Row struct {
	Name     string   `json:"name"`               // folder, zip, table entry and Lambda suffix: "send-message"
	Package  string   `json:"package"`            // folder under functions/: "thread"
	On       []string `json:"on"`                 // what calls it: `graphql Mutation.sendMessage`, `http POST /graphql`, `schedule rate(1 minute)`, `invoke` (another function, which does not wait), `call` (another function, which waits), `state auto-thread`, `state routine` (tenants' state machines), `event states` (a run of a tenant's state machine has ended), `mail` (a mail was received, and is in its bucket), `trigger cognito:pre-token`, `deploy before` (the deployment itself, before it changes the other functions), `deploy after`
	Auth     Auth     `json:"auth"`               // who may call it
	Needs    []string `json:"needs"`              // closed vocabulary, see Needs
	Timeout  Seconds  `json:"timeout"`            // seconds
	Memory   int      `json:"memory"`             // MiB
	Reserved *int     `json:"reserved,omitempty"` // reserved concurrency
	Batch    bool     `json:"batch,omitempty"`    // the resolver answers a list of events at once (BatchInvoke)
}

// Auth is who may call a function. The gateway in front of it verifies the token; operators and roles are checked by the handler.
type Auth string

// The callers a row can name.
const (
	AuthUser      Auth = "user"          // a JWT of the identity pool
	AuthOperator  Auth = "operator"      // a JWT of a platform operator
	AuthInternal  Auth = "internal"      // the platform itself: a rule, a queue, an IAM principal
	AuthSecret    Auth = "api-secret"    // the bearer of API_AUTH_SECRET, checked by the handler
	AuthWebhook   Auth = "webhook-token" // the bearer of the webhook's token, checked by the handler
	AuthSignature Auth = "signature"     // who signed the request with an integration's secret, checked by the handler
)

// Seconds is a duration in whole seconds, as Lambda counts a timeout.
type Seconds int

// Duration is s as a time.Duration.
func (s Seconds) Duration() time.Duration { return time.Duration(s) * time.Second }

// Needs is the closed vocabulary of what a function may use. A word ending in ":" takes the name of a function.
var Needs = []string{
	"db", "db:reader", "model", "publish", "operators", "page-key", "invoke:",
	"db:ledger",                // the database, as the ledger's one writer
	"db:owner",                 // the database, as its owner: migrations
	"audit",                    // the emission key: recording audited acts, and checking what was recorded
	"sign",                     // the anchors' signing key: signing
	"sign:public",              // its public half
	"anchoring",                // how anchors are made: ANCHOR_ORIGIN, and those beside it
	"object:audit:append",      // the write-once bucket: read, and add under a lock
	"object:audit:read",        // the same: read
	"object:exports:write",     // the exports' bucket
	"object:exports:read",      // links to finished exports
	"identity",                 // the identity pool's users
	"api-secret",               // API_AUTH_SECRET
	"default-model",            // what a new tenant's agents ask
	"guardrail",                // the guardrails of Amazon Bedrock: checking texts by them
	"sandbox",                  // where code of a model runs
	"secret:tools",             // tenants' keys and tokens of tool servers
	"secret:integrations",      // tenants' secrets of integrations
	"secret:integrations:read", // the same: reading them
	"secret:webhooks",          // the signing secrets of task webhooks
	"secret:webhooks:keep",     // the same: reading and putting them
	"secret:connections",       // the tokens of users' connections to providers
	"egress",                   // addresses on the internet that tenants name
	"mail",                     // sending e-mails
	"mail-from",                // the address that e-mails come from, if there is one
	"mail-in",                  // the domain whose mail is received, if there is one
	"object:mail:read",         // the bucket of received mails
	"push:send",                // notifications on people's devices: sending them
	"push:devices",             // the same: registering the devices
	"runtime",                  // the agent runtimes: starting turns in them
	"clock",                    // what starts tenants' schedules on time
	"workflow:machines",        // the workflow engine: making and deleting state machines
	"workflow:runs",            // the same: starting, stopping and reading their runs
	"workflow:runs:read",       // the same: reading their runs
	"workflow:tasks",           // the same: answering the tasks that wait
	"fields",                   // the functions that answer the schema's fields: calling them, and waiting for their answers
}

// Tags are what functions are built with. lambda.norpc leaves out the library for Go's retired runtime, grpcnotrace the pages of gRPC's own traces: each
// looks up methods by name, which keeps the linker from dropping any method, and nearly doubles a binary. nethttpomithttp2 leaves out HTTP/2, whose gain is
// many calls at a time over one connection: a function answers one.
const Tags = "lambda.norpc,grpcnotrace,nethttpomithttp2"

// Manifest is the whole file.
type Manifest struct {
	Rows []Row `json:"functions"`
}

// Parse reads the file strictly: an unknown member is an error.
func Parse(b []byte) (Manifest, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	var m Manifest
	if err := dec.Decode(&m); err != nil {
		return Manifest{}, fmt.Errorf("routes.json: %w", err)
	}
	return m, nil
}

// Triggers are the row's callers of one kind, without the kind: Triggers("graphql") = ["Mutation.sendMessage"].
func (r Row) Triggers(kind string) []string {
	var out []string
	for _, on := range r.On {
		if k, rest, _ := strings.Cut(on, " "); k == kind {
			out = append(out, rest)
		}
	}
	return out
}

// Has reports whether the row declares the need.
func (r Row) Has(need string) bool {
	for _, n := range r.Needs {
		if n == need {
			return true
		}
	}
	return false
}

// ByGraphQL maps `Type.field` to its row.
func (m Manifest) ByGraphQL() map[string]Row {
	out := map[string]Row{}
	for _, r := range m.Rows {
		for _, field := range r.Triggers("graphql") {
			out[field] = r
		}
	}
	return out
}

// Row is the row of that name.
func (m Manifest) Row(name string) (Row, bool) {
	for _, r := range m.Rows {
		if r.Name == name {
			return r, true
		}
	}
	return Row{}, false
}

// GraphQL are the rows that answer a field.
func (m Manifest) GraphQL() Manifest {
	var out Manifest
	for _, r := range m.Rows {
		if len(r.Triggers("graphql")) > 0 {
			out.Rows = append(out.Rows, r)
		}
	}
	return out
}
