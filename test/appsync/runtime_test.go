package appsync_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const imports = "import { util, extensions } from '@aws-appsync/utils';\n"

func info(parent, field string) values { return values{"parentTypeName": parent, "fieldName": field} }

// TestRuntime: the engine's util is the one that AWS documents. What the other tests say is worth as much as this.
func TestRuntime(t *testing.T) {
	e := start(t, nil)
	response := func(body string) ran {
		return e.run(imports+"export function response(ctx) {\n"+body+"\n}", "response", values{"info": info("Query", "f"), "result": values{"n": 7}})
	}
	for name, c := range map[string]struct {
		body string
		want ran
	}{
		"a result":      {`return ctx.result;`, ran{Value: values{"n": 7.0}, Errors: []raised{}}},
		"nothing":       {`return;`, ran{Errors: []raised{}}},
		"error ends it": {`util.error('m', 'T', { a: 1 }, { b: 2 }); return 1;`, ran{Error: &raised{"m", "T", values{"a": 1.0}, values{"b": 2.0}}, Errors: []raised{}}},
		"error without": {`util.error('m');`, ran{Error: &raised{Message: "m"}, Errors: []raised{}}},
		"appendError goes on": {`util.appendError('m', 'T', { a: 1 }); util.appendError('n'); return 1;`,
			ran{Value: 1.0, Errors: []raised{{Message: "m", ErrorType: "T", Data: values{"a": 1.0}}, {Message: "n"}}}},
		"unauthorized": {`util.unauthorized();`, ran{Error: &raised{Message: "Not Authorized to access f on type Query", ErrorType: "Unauthorized"}, Errors: []raised{}}},
	} {
		require.Equal(t, c.want, response(c.body), name)
	}
	for _, body := range []string{`return process.env;`, `return require('fs');`, `return new Promise(() => {});`, `return ctx.none.of;`, `return eval('1');`,
		`return setTimeout;`, `return util.none();`} {
		out := response(body)
		require.NotNil(t, out.Error, body)
		require.Equal(t, []any{"Runtime Error", "Code"}, []any{out.Error.Message, out.Error.ErrorType}, body)
	}
	_, err := e.ask("run", values{"text": `import fs from 'node:fs'; export function request() {}`, "step": "request", "ctx": values{}})
	require.ErrorContains(t, err, "the runtime has no such module")
}

// TestFilters: what a filter may be, and what it lets through.
func TestFilters(t *testing.T) {
	e := start(t, nil)
	set := func(parent, filter string) ran {
		return e.run(imports+"export function response(ctx) { extensions.setSubscriptionFilter("+filter+"); return null; }", "response", values{"info": info(parent, "f")})
	}
	transform := func(object string) string { return "util.transform.toSubscriptionFilter(" + object + ")" }
	event := values{"a": "x", "n": 5, "b": true, "list": []string{"p", "q"}, "in": values{"ner": "deep"}, "none": nil}
	for filter, want := range map[string]bool{
		`{ a: { eq: 'x' }, n: { ge: 5, lt: 6 } }`:                    true,
		`{ a: { eq: 'x' }, n: { gt: 5 } }`:                           false,
		`{ a: { in: ['y', 'x'] } }`:                                  true,
		`{ a: { notIn: ['y', 'x'] } }`:                               false,
		`{ a: { ne: 'y' }, b: { eq: true } }`:                        true,
		`{ a: { beginsWith: '' }, n: { between: [5, 6] } }`:          true,
		`{ list: { contains: 'p' }, a: { notContains: 'z' } }`:       true,
		`{ list: { containsAny: ['z', 'q'] } }`:                      true,
		`{ 'in.ner': { eq: 'deep' } }`:                               true,
		`{ 'in.other': { eq: 'deep' } }`:                             false,
		`{ missing: { eq: 'x' } }`:                                   false,
		`{ or: [{ a: { eq: 'y' } }, { n: { eq: 5 } }] }`:             true,
		`{ b: { eq: false }, or: [{ a: { eq: 'x' } }] }`:             false,
		`{ and: [{ a: { eq: 'x' } }, { n: { eq: 5 } }] }`:            true,
		`{ n: { eq: '5' } }`:                                         false,
		`{ z: { eq: 1 }, a: { eq: 'x' } }, ['z']`:                    true,
		`{ a: { eq: 'x' } }, [], { n: { eq: 1 }, b: { eq: true } }`:  true,
		`{ a: { eq: 'x' } }, [], { n: { eq: 1 }, b: { eq: false } }`: false,
	} {
		out := set("Subscription", transform(filter))
		require.Nil(t, out.Error, filter)
		require.JSONEq(t, map[bool]string{true: "true", false: "false"}[want], string(e.do("matches", values{"filter": out.Filter, "event": event})), filter)
	}
	list := func(n int, of string) string { return "[" + strings.TrimSuffix(strings.Repeat(of+",", n), ",") + "]" }
	one := `{ fieldName: 'a', operator: 'eq', value: 1 }`
	for _, filter := range []string{`{}`, `null`, `{ filterGroup: [] }`, `{ filterGroup: [{ filters: [] }] }`, transform(`{}`), transform(`{ a: { eq: {} } }`), transform(`{ a: { eq: null } }`),
		transform(`{ a: { like: 'x' } }`), transform(`{ a: { in: ` + list(6, "1") + ` } }`), transform(`{ a: { containsAny: ` + list(21, "1") + ` } }`), transform(`{ a: { between: [1] } }`),
		transform(`{ 'a.b.c.d.e.f': { eq: 1 } }`), transform(`{ ['` + strings.Repeat("x", 257) + `']: { eq: 1 } }`),
		`{ filterGroup: [{ filters: ` + list(11, one) + ` }] }`, `{ filterGroup: ` + list(11, `{ filters: [`+one+`] }`) + ` }`} {
		out := set("Subscription", filter)
		require.NotNil(t, out.Error, filter)
		require.Nil(t, out.Filter, filter)
	}
	require.NotNil(t, set("Query", transform(`{ a: { eq: 1 } }`)).Error, "only a subscription has a filter")
}
