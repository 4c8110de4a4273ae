package gateway

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// document is a request's query: parsed, within the limits, valid. It does not change, except that it remembers plans.
type document struct {
	query string
	ast   *ast.QueryDocument

	switches []string // the variables that @skip and @include use

	linesOnce sync.Once
	lines     lines

	mu    sync.Mutex
	plans map[string]*plan // by operation and the values of the variables that its @skip and @include use
}

// document is the query's document, from the cache when it can be.
func (g *Gateway) document(query string) (d *document, problems []Error) {
	if d := g.documents.get(query); d != nil {
		return d, nil
	}
	defer func() { // a defect of the parser must not end the process
		if p := recover(); p != nil {
			g.config.Log.Error("graphql: parsing panicked", "panic", p, "stack", string(debug.Stack()))
			d, problems = nil, []Error{newError(fault.ValidationError, "The query cannot be read.")}
		}
	}()
	if !utf8.ValidString(query) {
		return nil, []Error{newError(fault.ValidationError, "The query is not valid UTF-8.")}
	}
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: query}, g.config.MaxTokens)
	if err != nil {
		return nil, []Error{syntax(err)}
	}
	d = &document{query: query, ast: doc, plans: map[string]*plan{}}
	if message, at := g.config.checkLimits(doc); message != "" {
		return nil, []Error{d.invalid(message, at)}
	}
	for _, e := range validator.ValidateWithRules(g.schema.Schema, doc, g.rules()) {
		problems = append(problems, validation(e))
		if len(problems) == maxVariableErrors {
			break
		}
	}
	if problems != nil {
		return nil, problems
	}
	d.switches = switches(doc)
	g.documents.put(d)
	return d, nil
}

// invalid is a ValidationError at a place of the query.
func (d *document) invalid(message string, at *ast.Position) Error {
	return newError(fault.ValidationError, message, d.location(at))
}

func syntax(err error) Error {
	var g *gqlerror.Error
	if errors.As(err, &g) {
		e := validation(g)
		e.Message = "Syntax Error: " + e.Message
		return e
	}
	return newError(fault.ValidationError, "Syntax Error: "+short(err.Error()))
}

func validation(g *gqlerror.Error) Error {
	e := newError(fault.ValidationError, cut(g.Message))
	for _, l := range g.Locations {
		e.Locations = append(e.Locations, Location{Line: l.Line, Column: l.Column})
	}
	return e
}

// cut bounds a message that repeats parts of a request.
func cut(message string) string {
	const most = 2000
	if len(message) <= most {
		return message
	}
	return strings.ToValidUTF8(message[:most], "") + "…"
}

// rules are those of the specification, and one for what gqlparser leaves to the executor.
func (g *Gateway) rules() *rules.Rules {
	all := rules.NewDefaultRules()
	all.AddRule("ValuesOfScalars", func(observers *core.Events, report core.AddErrFunc) {
		observers.OnValue(func(_ *core.Walker, value *ast.Value) {
			if reason := g.schema.literalProblem(value); reason != "" {
				report(core.Message("%s", reason), core.At(value.Position))
			}
		})
	})
	return all
}

// literalProblem says why a literal is no value of its scalar: an Int beyond 32 bits, or AppSync's scalars.
func (s *schema) literalProblem(value *ast.Value) string {
	if value.Definition == nil || value.Definition.Kind != ast.Scalar || value.ExpectedType == nil {
		return ""
	}
	switch name := value.Definition.Name; {
	case value.Kind == ast.Variable, value.Kind == ast.NullValue, value.ExpectedType.Elem != nil && value.Kind == ast.ListValue:
		return ""
	case name == "Int" && value.Kind == ast.IntValue:
		if _, ok := s.literalScalar(nil, value, name, nil); !ok {
			return "Int cannot represent non 32-bit signed integer value: " + short(value.Raw)
		}
	case scalars[name].want != "":
		raw, ok := s.untyped(nil, value, nil)
		if want := checkScalar(name, raw); !ok || want != "" {
			return fmt.Sprintf("%s cannot represent value: %s, want %s.", name, short(value.String()), scalars[name].want)
		}
	}
	return ""
}
