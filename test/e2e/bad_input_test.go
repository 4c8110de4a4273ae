package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// bad is a request that must be refused.
type bad struct {
	name        string
	contentType string // default application/json
	body        string
	status      int // of the plain port; the TLS port, which plays AppSync, answers 200
	errorType   string
	message     string // part of the first error's message
}

// request is a GraphQL request's body.
func request(query string, v vars) string {
	body, err := json.Marshal(map[string]any{"query": query, "variables": v})
	if err != nil {
		panic(err) // the tests' own values
	}
	return string(body)
}

func invalid(name, body, message string) bad {
	return bad{name: name, body: body, status: http.StatusBadRequest, errorType: "ValidationError", message: message}
}

func notFound(name, body, message string) bad {
	return bad{name: name, body: body, status: http.StatusNotFound, errorType: "NotFound", message: message}
}

const (
	create = `mutation ($input: CreateThreadInput!) { createThread(input: $input) { id } }`
	update = `mutation ($id: ID!, $input: UpdateThreadInput!) { updateThread(id: $id, input: $input) { id } }`
	make_  = `mutation ($input: CreateAgentInput!) { createAgent(input: $input) { id } }`
	change = `mutation ($id: ID!, $input: UpdateAgentInput!) { updateAgent(id: $id, input: $input) { id } }`
)

// TestBadInput sends every bad request to both ports: each is refused with the right type, status and words, nothing is written, no
// internal error is logged, and the platform still answers.
func TestBadInput(t *testing.T) {
	t.Parallel()
	p := startPlatform(t)
	alice, bob := p.as(t, "alice"), p.as(t, "bob")
	bob.ended(t, bob.send(t, bob.open(t), "hello"))
	ada := alice.query(t, `{ listAgents { items { id } } }`, nil).get("listAgents.items.0.id")
	var cases []bad
	cases = append(cases, malformed()...)
	cases = append(cases, oversized()...)
	cases = append(cases, wrongValues(ada)...)
	cases = append(cases, wrongIDs()...)
	cases = append(cases, forgedPages(t, alice, bob)...)
	cases = append(cases, hostileText(ada)...)

	before := everything(t, alice, bob)
	secure := p.tlsClient(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.contentType == "" {
				c.contentType = "application/json"
			}
			for _, port := range []struct {
				url    string
				client *http.Client
				status int
			}{{p.Outputs.APIURL, plainClient, c.status}, {p.Outputs.AppSyncURL, secure, http.StatusOK}} {
				a, err := post(port.client, port.url+"/graphql", alice.tokens.IdToken, c.contentType, strings.NewReader(c.body))
				require.NoError(t, err)
				require.NotEmpty(t, a.Errors, a.Raw)
				first := a.Errors[0]
				require.Equal(t, fmt.Sprint(port.status, " ", c.errorType), fmt.Sprint(a.Status, " ", first.ErrorType), a.Raw)
				require.Contains(t, first.Message, c.message)
				require.NotNil(t, first.Locations, "locations is a list")
				require.NotNil(t, first.Path, "path is a list")
				requireNoLeak(t, a.Raw)
			}
			require.Equal(t, before, everything(t, alice, bob), "something was written")
		})
	}
	require.NotContains(t, p.output.String(), " ERR ", "an internal error was logged")
	alice.ended(t, alice.send(t, alice.open(t), "still there?"))
}

// requireNoLeak looks for what only the log may say.
func requireNoLeak(t testing.TB, raw string) {
	t.Helper()
	require.Less(t, len(raw), 16<<10, "an error repeats the request")
	for _, inner := range []string{"internal error", "SQLSTATE", "pgx", "goroutine", ".go:", "thread_turns", "insert into"} {
		require.NotContains(t, raw, inner)
	}
}

// everything is all that the users' tenants hold, as text.
func everything(t testing.TB, users ...*user) string {
	t.Helper()
	var all []string
	for _, u := range users {
		a := u.query(t, `{ listThreads(limit: 100) { nextToken items { id threadUUID status title metadata tokenCount updatedAt
			messages(limit: 100) { items { id role body } } turns(limit: 100) { items { id status attempts } } } }
			listAgents(limit: 100) { nextToken items { id name description status systemPrompt skillPackIds knowledgeBaseId updatedAt
				rateLimits { turnsPerMinute turnsPerHour turnsPerDay } } } }`, nil)
		all = append(all, string(a.Data))
	}
	return strings.Join(all, "\n")
}

// malformed is what is no GraphQL request, or does not fit the schema.
func malformed() []bad {
	notJSON := "The request body is not valid JSON"
	cases := []bad{
		invalid("no body", "", notJSON),
		invalid("not JSON", `{"query": `, notJSON),
		invalid("JSON with more behind it", request(`{ listAgents { nextToken } }`, nil)+"x", notJSON),
		invalid("null", `null`, "must be a JSON object"),
		invalid("a list (batches are not taken)", `[`+request(`{ listAgents { nextToken } }`, nil)+`]`, "must be a JSON object"),
		invalid("no query", `{"variables": {}}`, `needs a "query"`),
		invalid("query is a number", `{"query": 7}`, `needs a "query"`),
		invalid("variables are a list", `{"query": "{ __typename }", "variables": []}`, `"variables" must be a JSON object`),
		invalid("operation name is a number", `{"query": "{ __typename }", "operationName": 7}`, `"operationName" must be a string`),
		invalid("unknown operation name", `{"query": "query A { __typename }", "operationName": "B"}`, "Unknown operation"),
		invalid("two operations and no name", `{"query": "query A { __typename } query B { __typename }"}`, "Must provide operation name"),
		invalid("empty query", request("", nil), ""),
		invalid("query of spaces", request(" \n ", nil), ""),
		invalid("not GraphQL", request(`{ listAgents {`, nil), "Syntax Error"),
		invalid("a string without end", request(`{ getThread(id: "CHAT-1) { id } }`, nil), "Syntax Error"),
		invalid("unknown field", request(`{ listAgents { items { secret } } }`, nil), `Cannot query field "secret" on type "Agent"`),
		invalid("unknown root field", request(`{ dropTables }`, nil), `Cannot query field "dropTables"`),
		invalid("unknown argument", request(`{ listAgents(all: true) { nextToken } }`, nil), `Unknown argument "all"`),
		invalid("unknown type", request(`query ($x: Nothing) { listAgents { nextToken } }`, nil), "Nothing"),
		invalid("unknown directive", request(`{ listAgents @please { nextToken } }`, nil), "please"),
		invalid("no selection", request(`{ listAgents }`, nil), "must have a selection of subfields"),
		invalid("a selection on a leaf", request(`{ listAgents { nextToken { x } } }`, nil), ""),
		invalid("a required argument is missing", request(`{ getThread { id } }`, nil), `"id"`),
		invalid("undeclared variable", request(`{ getThread(id: $id) { id } }`, nil), `"$id" is not defined`),
		invalid("unused variable", request(`query ($id: ID!) { listAgents { nextToken } }`, vars{"id": "x"}), `"$id" is never used`),
		invalid("a fragment of itself", request(`{ listAgents { ...A } } fragment A on AgentConnection { ...A }`, nil), "within itself"),
		invalid("fragments in a circle", request(`{ listAgents { ...A } } fragment A on AgentConnection { ...B } fragment B on AgentConnection { ...A }`, nil), "within itself"),
		invalid("a subscription by POST", request(`subscription { onThreadEvent(threadId: "CHAT-1") { __typename } }`, nil), "WebSocket"),
		{name: "plain text", contentType: "text/plain", body: request(`{ __typename }`, nil), status: http.StatusUnsupportedMediaType, errorType: "ValidationError", message: "application/json"},
		{name: "a form", contentType: "application/x-www-form-urlencoded", body: "query=%7B__typename%7D", status: http.StatusUnsupportedMediaType, errorType: "ValidationError", message: "application/json"},
		{name: "another charset", contentType: "application/json; charset=latin1", body: request(`{ __typename }`, nil), status: http.StatusUnsupportedMediaType, errorType: "ValidationError", message: "application/json"},
		{name: "no media type", contentType: ";;", body: request(`{ __typename }`, nil), status: http.StatusUnsupportedMediaType, errorType: "ValidationError", message: "application/json"},
		invalid("a byte that is not UTF-8 in the query", "{\"query\": \"{ getThread(id: \\\"\xff\\\") { id } }\"}", ""),
		invalid("a byte that is not UTF-8 in a variable", "{\"query\": \""+create+"\", \"variables\": {\"input\": {\"title\": \"\xc3\x28\"}}}", ""),
		invalid("a lone surrogate in a variable", "{\"query\": \""+create+"\", \"variables\": {\"input\": {\"title\": \"\\ud800\"}}}", ""),
		invalid("a NUL byte in the body", "{\"query\": \"{ __typename }\x00\"}", notJSON),
		invalid("a NUL in the query", request("{ listAgents\x00 { nextToken } }", nil), ""),
	}
	return cases
}

// oversized is what costs too much.
func oversized() []bad {
	aliases := func(n int, field string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, " a%d: %s", i, field)
		}
		return b.String()
	}
	var laughs strings.Builder // 10^8 fields when expanded
	laughs.WriteString(`{ listAgents { items { ...L0 } } }`)
	for i := range 8 {
		fmt.Fprintf(&laughs, " fragment L%d on Agent { %s }", i, strings.Repeat(fmt.Sprintf("...L%d ", i+1), 10))
	}
	laughs.WriteString(` fragment L8 on Agent { id }`)
	huge := func(bytes int) string { return request(`{ __typename }`, vars{"x": strings.Repeat("x", bytes)}) }
	tooLarge := func(name, body string) bad {
		return bad{name: name, body: body, status: http.StatusRequestEntityTooLarge, errorType: "ValidationError", message: "larger than"}
	}
	return []bad{
		invalid("too deep", request(strings.Repeat("{ a ", 11)+strings.Repeat("}", 11), nil), "levels deep"),
		invalid("much too deep", request(strings.Repeat("{ a ", 4000)+strings.Repeat("}", 4000), nil), ""),
		invalid("introspection too deep", request(`{ __schema { types { `+strings.Repeat("fields { type { ", 12)+"name"+strings.Repeat(" } }", 12)+` } } }`, nil), "deep"),
		invalid("a list of lists of lists as a variable", `{"query": "{ __typename }", "variables": {"x": `+strings.Repeat("[", 200_000)+strings.Repeat("]", 200_000)+`}}`, ""),
		invalid("too many fields at the root", request("{"+aliases(51, "listAgents { nextToken }")+" }", nil), "at its root"),
		invalid("too many mutations", request("mutation {"+aliases(51, "createThread(input: {}) { id }")+" }", nil), "at its root"),
		invalid("many aliases", request("{ listAgents { items {"+aliases(2500, "id")+" } } }", nil), "more fields than"),
		invalid("aliases without end", request("{ listAgents { items {"+aliases(30_000, "id")+" } } }", nil), ""),
		invalid("fragments that multiply", request(laughs.String(), nil), "more fields than"),
		tooLarge("a body of a little over 1 MiB", huge(1<<20)),
		tooLarge("a body of 20 MB", huge(20_000_000)),
		invalid("a message of more than 128 KiB", request(sendDocument, vars{"input": vars{"threadId": "CHAT-1", "body": strings.Repeat("x", 128<<10+1)}}), "body is longer than 131072 bytes"),
		invalid("metadata of more than 64 KiB", request(create, vars{"input": vars{"metadata": `{"x":"` + strings.Repeat("x", 64<<10) + `"}`}}), "metadata is longer than 65536 bytes"),
		invalid("a title of more than 500 characters", request(create, vars{"input": vars{"title": strings.Repeat("x", 501)}}), "title is longer than 500"),
		invalid("a name of more than 200 characters", request(make_, vars{"input": vars{"name": strings.Repeat("x", 201)}}), "name is longer than 200"),
		invalid("a client token of more than 128 characters", request(create, vars{"input": vars{"clientToken": strings.Repeat("x", 129)}}), "clientToken is longer than 128"),
		invalid("more than 50 skill packs", request(make_, vars{"input": vars{"name": "x", "skillPackIds": strings.Split(strings.Repeat("x", 51), "")}}), "skillPackIds"),
	}
}

// wrongValues are values of the wrong type, or beyond their bounds.
func wrongValues(agent string) []bad {
	return []bad{
		invalid("an enum value that does not exist", request(`mutation { updateThread(id: "CHAT-1", input: {status: done}) { id } }`, nil), "done"),
		invalid("an enum value that does not exist, as a variable", request(update, vars{"id": "CHAT-1", "input": vars{"status": "done"}}), `"done" does not exist in "ThreadStatus" enum`),
		invalid("an enum value as a string", request(`{ listThreads(filter: {status: "open"}) { nextToken } }`, nil), "open"),
		invalid("an enum value in other letters", request(`{ listThreads(filter: {channel: Chat}) { nextToken } }`, nil), "Chat"),
		invalid("an onBusy that does not exist", request(sendDocument, vars{"input": vars{"threadId": "CHAT-1", "body": "x", "onBusy": "WAIT"}}), "WAIT"),
		invalid("an unknown input field", request(create, vars{"input": vars{"tenantId": "x"}}), `"tenantId" is not defined`),
		invalid("a status that is not an agent's", request(change, vars{"id": agent, "input": vars{"status": "deleted"}}), "deleted"),
		invalid("a number for a text", request(create, vars{"input": vars{"title": 7}}), "String cannot represent"),
		invalid("a list for a text", request(create, vars{"input": vars{"title": []string{"x"}}}), "String cannot represent"),
		invalid("a text for a number", request(`query ($n: Int) { listThreads(limit: $n) { nextToken } }`, vars{"n": "5"}), "Int cannot represent"),
		invalid("a fraction for a whole number", request(`query ($n: Int) { listThreads(limit: $n) { nextToken } }`, vars{"n": 1.5}), "Int cannot represent"),
		invalid("a number beyond 32 bits", request(`query ($n: Int) { listThreads(limit: $n) { nextToken } }`, vars{"n": 1 << 40}), "32-bit"),
		invalid("a number without end", `{"query": "query ($n: Int) { listThreads(limit: $n) { nextToken } }", "variables": {"n": 1e999999}}`, ""),
		invalid("null for what is required", request(create, vars{"input": nil}), "must not be null"),
		invalid("nothing for what is required", request(create, nil), "was not provided"),
		invalid("limit 0", request(`{ listThreads(limit: 0) { nextToken } }`, nil), "limit must be from 1 to 100"),
		invalid("limit 101 of a nested list", request(`{ getThread(id: "CHAT-1") { messages(limit: 101) { nextToken } } }`, nil), "limit must be from 1 to 100"),
		invalid("an empty body", request(sendDocument, vars{"input": vars{"threadId": "CHAT-1", "body": ""}}), "body must not be empty"),
		invalid("a body of spaces", request(sendDocument, vars{"input": vars{"threadId": "CHAT-1", "body": " \n\t"}}), "body must not be empty"),
		invalid("an empty name", request(make_, vars{"input": vars{"name": ""}}), "name must not be empty"),
		invalid("a name of null", request(change, vars{"id": agent, "input": vars{"name": nil}}), "name must not be null"),
		invalid("a rate limit of 0", request(make_, vars{"input": vars{"name": "x", "rateLimits": vars{"turnsPerDay": 0}}}), "must be 1 or more"),
		invalid("a rate limit below 0", request(make_, vars{"input": vars{"name": "x", "rateLimits": vars{"turnsPerDay": -1}}}), "must be 1 or more"),
		invalid("metadata that is not JSON", request(create, vars{"input": vars{"metadata": `{"x":`}}), "AWSJSON"),
		invalid("metadata that is not an object", request(create, vars{"input": vars{"metadata": `["x"]`}}), "metadata must be a JSON object"),
		invalid("metadata that is null as text", request(create, vars{"input": vars{"metadata": `null`}}), "metadata must be a JSON object"),
		invalid("metadata as an object instead of its text", request(create, vars{"input": vars{"metadata": vars{"x": 1}}}), "AWSJSON"),
	}
}

// wrongIDs are ids of nothing: NotFound, whatever they look like.
func wrongIDs() (cases []bad) {
	ids := map[string]string{"a word": "nope", "nothing": "", "a quote": `'; drop table threads; --`, "a path": "../../etc/passwd", "a NUL": "CHAT-1\x00",
		"a number": "1", "a UUID": "01900000-0000-7000-8000-00000000ffff", "the nil UUID": "00000000-0000-0000-0000-000000000000", "a long text": strings.Repeat("9", 5000),
		"a thread number beyond all": "CHAT-99999999999999999999999", "thread 0": "CHAT-0", "a thread below 0": "CHAT--1", "a thread with a leading 0": "CHAT-01",
		"a thread's id in small letters": "chat-1", "a thread's id with a space": " CHAT-1"}
	for name, id := range ids {
		v := vars{"id": id}
		cases = append(cases,
			notFound("getThread of "+name, request(`query ($id: ID!) { getThread(id: $id) { id } }`, v), "thread not found"),
			notFound("getAgent of "+name, request(`query ($id: ID!) { getAgent(id: $id) { id } }`, v), "agent not found"),
			notFound("turn of "+name, request(`query ($id: ID!) { turn(id: $id) { id } }`, v), "turn not found"),
			notFound("sendMessage to "+name, request(sendDocument, vars{"input": vars{"threadId": id, "body": "x"}}), "thread not found"),
			notFound("updateThread of "+name, request(update, vars{"id": id, "input": vars{"title": "x"}}), "thread not found"),
			notFound("updateAgent of "+name, request(change, vars{"id": id, "input": vars{"description": "x"}}), "agent not found"),
		)
		if id != "" {
			cases = append(cases, notFound("createThread with agent "+name, request(create, vars{"input": vars{"agentId": id}}), "agent not found"),
				notFound("createAgent with template "+name, request(make_, vars{"input": vars{"name": "x", "templateId": id}}), "template not found"))
		}
	}
	return append(cases,
		invalid("a filter with a word as agent", request(`{ listThreads(filter: {agentId: "nope"}) { nextToken } }`, nil), "filter.agentId is not an id"),
		invalid("an id that is a list", request(`query ($id: ID!) { getThread(id: $id) { id } }`, vars{"id": []string{"CHAT-1"}}), "ID cannot represent"),
		invalid("an id that is a fraction", request(`query ($id: ID!) { getThread(id: $id) { id } }`, vars{"id": 1.5}), "ID cannot represent"),
	)
}

// forgedPages are page tokens that were not given out for the list they are used in.
func forgedPages(t testing.TB, alice, bob *user) (cases []bad) {
	const list = `query ($next: String) { listThreads(limit: 1, nextToken: $next) { items { id } nextToken } }`
	for range 2 {
		alice.open(t)
		bob.open(t)
	}
	own := alice.query(t, list, nil).get("listThreads.nextToken")
	foreign := bob.query(t, list, nil).get("listThreads.nextToken")
	require.NotEmpty(t, own)
	require.NotEmpty(t, foreign)
	flipped := []byte(own)
	flipped[len(flipped)/2] ^= 1
	for name, token := range map[string]string{"nothing": "", "a word": "nope", "base64 of zeros": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "another tenant's": foreign,
		"a changed one": string(flipped), "a cut one": own[:len(own)-2], "a longer one": own + "AA", "a NUL": "\x00"} {
		cases = append(cases, invalid("the page token is "+name, request(list, vars{"next": token}), "the page token is not one of this list"))
	}
	return append(cases,
		invalid("the page token of threads for agents", request(`query ($next: String) { listAgents(nextToken: $next) { nextToken } }`, vars{"next": own}), "the page token is not one of this list"),
		invalid("the page token of threads for messages", request(`query ($next: String) { getThread(id: "CHAT-1") { messages(nextToken: $next) { nextToken } } }`, vars{"next": own}), "the page token is not one of this list"),
		invalid("the page token for another filter", request(`query ($next: String) { listThreads(filter: {status: open}, nextToken: $next) { nextToken } }`, vars{"next": own}), "the page token is not one of this list"))
}

// hostileText puts NUL and half characters wherever a text is stored.
func hostileText(agent string) (cases []bad) {
	const nul = "a\x00b"
	field := func(document, name string, value any, more vars) bad {
		input := vars{name: value}
		for k, v := range more {
			input[k] = v
		}
		v := vars{"input": input}
		switch document {
		case update:
			v["id"] = "CHAT-1"
		case change:
			v["id"] = agent
		}
		return invalid(fmt.Sprintf("%s in %s", name, strings.Fields(document[bytes.IndexByte([]byte(document), '{')+1:])[0]), request(document, v), name)
	}
	named := vars{"name": "x"}
	cases = []bad{
		field(create, "title", nul, nil), field(create, "clientToken", nul, nil), field(create, "metadata", `{"a":"`+nul+`"}`, nil),
		field(update, "title", nul, nil), field(update, "metadata", `{"a":"`+nul+`"}`, nil),
		field(sendDocument, "body", nul, vars{"threadId": "CHAT-1"}), field(sendDocument, "clientToken", nul, vars{"threadId": "CHAT-1", "body": "x"}),
		field(make_, "name", nul, nil), field(make_, "description", nul, named), field(make_, "systemPrompt", nul, named), field(make_, "clientToken", nul, named),
		field(make_, "knowledgeBaseId", nul, named), field(make_, "skillPackIds", []string{nul}, named),
		field(change, "name", nul, nil), field(change, "description", nul, nil), field(change, "systemPrompt", nul, nil),
		field(change, "knowledgeBaseId", nul, nil), field(change, "skillPackIds", []string{nul}, nil),
	}
	for i := range cases {
		cases[i].name = "a NUL as " + cases[i].name
	}
	for name, metadata := range map[string]string{"a NUL, escaped, in metadata": `{"a":"\u0000"}`, "a NUL as a name in metadata": `{"\u0000":1}`,
		"half a character in metadata": `{"a":"\ud800"}`, "the other half in metadata": `{"a":"\udc00 "}`, "two halves in the wrong order in metadata": `{"a":"\udc00\ud800"}`,
		"half a character and a letter in metadata": `{"a":["\ud83dx"]}`, "half a character as a name in metadata": `{"\ud800":1}`} {
		cases = append(cases, invalid(name, request(create, vars{"input": vars{"metadata": metadata}}), "metadata"),
			invalid(name+", changed", request(update, vars{"id": "CHAT-1", "input": vars{"metadata": metadata}}), "metadata"))
	}
	return cases
}
