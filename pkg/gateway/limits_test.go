package gateway

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// refused wants the request refused before execution with one sentence.
func refused(t *testing.T, g *Gateway, request Request, message string) {
	t.Helper()
	r := g.Execute(t.Context(), request, alice, "r")
	require.Nil(t, r.Data)
	require.NotEmpty(t, r.Errors)
	require.Contains(t, r.Errors[0].Message, message)
	require.Equal(t, fault.ValidationError, r.Errors[0].ErrorType)
	require.Equal(t, 400, r.Status())
}

func TestLimits(t *testing.T) {
	g := platform(t, Config{}, nil)
	ask := func(query string) Request { return Request{Query: query} }

	deep := func(levels int) string {
		return "{ __schema { types { " + strings.Repeat("ofType { ", levels) + "name" + strings.Repeat(" }", levels+3)
	}
	require.Empty(t, g.Execute(t.Context(), ask(deep(10)), alice, "r").Errors)
	refused(t, g, ask(deep(20)), "The introspection is 23 levels deep; the limit is 20.")
	refused(t, g, ask("{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }"), "introspection depth")

	zoo := zooGateway(t, Config{})
	nest := func(n int) string {
		return "{ strict { " + strings.Repeat("must { ", n-2) + "id" + strings.Repeat(" }", n)
	}
	require.NotEqual(t, fault.ValidationError, zoo.Execute(t.Context(), ask(nest(10)), nil, "r").Errors[0].ErrorType)
	refused(t, zoo, ask(nest(11)), "The operation is 11 levels deep; the limit is 10.")
	refused(t, zoo, ask("{ strict { ...A } } fragment A on Strict { must { must { must { must { ...B } } } } } fragment B on Strict { must { must { must { must { must { id } } } } } }"),
		"The operation is 11 levels deep; the limit is 10.")

	var roots strings.Builder
	for i := range 51 {
		fmt.Fprintf(&roots, "a%d: turn(id: 1) { id } ", i)
	}
	refused(t, g, ask("{ "+roots.String()+"}"), "51 fields at its root; the limit is 50.")
	refused(t, g, ask("{ ...A ...B } fragment A on Query { "+strings.Repeat("turn(id: 1) { id } ", 30)+"} fragment B on Query { ...A }"), "the limit is 50.")
	refused(t, g, ask("{ turn(id: 1) { "+strings.Repeat("id ", 2000)+"} }"), "more fields than the limit of 2000")
	refused(t, g, ask("{ turn(id: 1) { "+strings.Repeat("id ", 11_000)+"} }"), "exceeded token limit of 10000")
	refused(t, g, ask("{ turn(id: "+strings.Repeat("[", 5000)), "nesting depth")
}

// TestFragmentBomb: a few lines that would be billions of fields are refused, not counted out.
func TestFragmentBomb(t *testing.T) {
	g := zooGateway(t, Config{})
	var b strings.Builder
	b.WriteString("{ loose { ...F0 } }")
	for i := range 40 {
		fmt.Fprintf(&b, " fragment F%d on Strict { a: inner { ...F%d } ...F%[2]d b: holes { ...F%[2]d } }", i, i+1)
	}
	b.WriteString(" fragment F40 on Strict { id }")
	refused(t, g, Request{Query: b.String()}, "more fields than the limit of 2000")

	refused(t, g, Request{Query: "{ loose { ...A } } fragment A on Strict { inner { ...B } } fragment B on Strict { ...A }"}, `Cannot spread fragment "A" within itself.`)
	refused(t, g, Request{Query: "{ loose { id } } fragment A on Strict { ...A }"}, "A")
}

// TestCostlyRequests: what the limits let through is checked in bounded time.
func TestCostlyRequests(t *testing.T) {
	g := zooGateway(t, Config{})
	chain := func(n int) string {
		var b strings.Builder
		b.WriteString("{ loose { ...F0 } }")
		for i := range n {
			fmt.Fprintf(&b, " fragment F%d on Strict { ...F%d }", i, i+1)
		}
		fmt.Fprintf(&b, " fragment F%d on Strict { id }", n)
		return b.String()
	}
	operations := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "query Q%d { loose { ...F } } ", i)
		}
		return b.String() + "fragment F on Strict { id must { id } }"
	}
	spreads := func(n int, body string) string {
		var b strings.Builder
		b.WriteString("{ loose {")
		for i := range n {
			fmt.Fprintf(&b, " ...F%d", i)
		}
		b.WriteString(" } }")
		for i := range n {
			fmt.Fprintf(&b, " fragment F%d on Strict { %s }", i, body)
		}
		return b.String()
	}
	for name, query := range map[string]string{
		"spreads":         spreads(900, "id"),
		"deep spreads":    spreads(300, "must { must { id } }"),
		"one name":        "{ loose { " + strings.Repeat("id ", 1900) + "} }",
		"many names":      "{ loose { " + strings.Repeat("inner { id number } ", 600) + "} }",
		"chain":           chain(1300),
		"operations":      operations(480),
		"inline":          "{ loose { " + strings.Repeat("... on Strict { id } ", 900) + "} }",
		"variables":       "query(" + strings.Repeat("$a: Int ", 2000) + ") { loose { id } }",
		"list":            "{ echo(nested: [" + strings.Repeat("[1] ", 2400) + "]) }",
		"directives":      "{ loose { id " + strings.Repeat("@skip(if: true) ", 1400) + "} }",
		"same directives": "{ loose { id " + strings.Repeat("@a ", 4000) + "} }",
		"unknown":         "{ loose { " + strings.Repeat("nonsense ", 1900) + "} }",
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			r := g.Execute(t.Context(), Request{Query: query}, nil, "r")
			took := time.Since(began)
			t.Logf("%v, %d bytes", took.Round(time.Millisecond), len(r.append(nil)))
			require.Less(t, len(r.append(nil)), 1<<20)
		})
	}
}

func TestAnswerSize(t *testing.T) {
	g := platform(t, Config{MaxAnswer: 10_000}, map[string]handlerFunc{"Query.listThreads": answers(string(fifty()))})
	r := g.Execute(t.Context(), Request{Query: "{ listThreads { items { id } } }"}, alice, "r")
	require.Empty(t, r.Errors)
	refused(t, g, Request{Query: eightFields}, "The answer is larger than 10000 bytes: ask for less at a time.")
}

func TestNumberOfCalls(t *testing.T) {
	g := platform(t, Config{MaxEvents: 60}, map[string]handlerFunc{
		"Query.listThreads": answers(string(fifty())), "Thread.agent": answers(`{"data":null}`),
	})
	r := g.Execute(t.Context(), Request{Query: "{ listThreads { items { agent { id } } } }"}, alice, "r")
	require.Empty(t, r.Errors)
	r = g.Execute(t.Context(), Request{Query: "{ listThreads { items { agent { id } b: agent { id } } } }"}, alice, "r")
	require.Len(t, r.Errors, 50)
	require.Equal(t, "The request needs too many calls: ask for less at a time.", r.Errors[0].Message)
	require.Equal(t, fault.ValidationError, r.Errors[0].ErrorType)
}

func TestCacheIsBounded(t *testing.T) {
	c := newCache(100)
	for i := range 50 {
		c.put(&document{query: fmt.Sprintf("%010d", i)})
	}
	require.Len(t, c.byKey, 10)
	require.Equal(t, 10, c.order.Len())
	require.Nil(t, c.get("0000000000"))
	require.NotNil(t, c.get("0000000040"))
	c.put(&document{query: "0000000050"}) // 41 is the oldest now, not 40
	require.NotNil(t, c.get("0000000040"))
	require.Nil(t, c.get("0000000041"))
	c.put(&document{query: strings.Repeat("x", 13)}) // more than an eighth
	require.Len(t, c.byKey, 10)
	require.Equal(t, 0, c.left)
}
