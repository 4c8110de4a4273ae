// Package handler stands between the platform's functions and whatever calls them.
//
// A function is made by a constructor `func Name(env *handler.Env) lambda.Handler`, the same for every trigger. It takes what it needs from
// the Env, which refuses what the function's manifest row does not declare, and wraps its operation by the adapter of its trigger:
// Resolver, Batch (GraphQL), HTTP, Task (asynchronous invoke), Schedule. Adapters decode, put the caller into the context and map errors,
// once, as their last step.
package handler

import (
	"context"
	"fmt"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/invoke"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// Constructor makes a function.
type Constructor = func(env *Env) lambda.Handler

// Ports are the technologies behind the needs. Each is opened when the first function asks for it.
type Ports struct {
	DB        func() *postgres.DB // as the role that row-level security binds
	Reader    func() *postgres.DB // as the compliance reader
	Model     func() model.Model
	Publish   func() publish.Publisher
	Invoke    func() invoke.Invoker
	Operators func() tenant.Operators
	PageKey   func() page.Key
	Signal    func(point string) // tests only: see turn.Runner
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

// Model is the managed language model (need "model").
func (e *Env) Model() model.Model {
	e.need("model")
	return e.ports.Model()
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

// Signal is a test's crash points; nil outside tests.
func (e *Env) Signal() func(point string) { return e.ports.Signal }

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
