package gateway

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"io"
	"log/slog"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/tenant"
	contracts "github.com/agentplatform/agentplatform/schema"
	"github.com/agentplatform/agentplatform/test/npm"
)

//go:embed testdata/zoo.graphql
var zooSDL string

//go:embed testdata/introspection.graphql
var introspectionQuery string

const zooPrelude = "\nscalar AWSDateTime\nscalar AWSJSON\ndirective @aws_subscribe(mutations: [String!]!) on FIELD_DEFINITION\n" +
	"directive @aws_iam on FIELD_DEFINITION | OBJECT\ndirective @aws_cognito_user_pools(cognito_groups: [String!]) on FIELD_DEFINITION | OBJECT\n"

var (
	zooFields = strings.Fields(`Query.animal Query.animals Query.being Query.beings Query.grid Query.strict Query.loose Query.scalars Query.echo
		Query.must Query.gone Mutation.first Mutation.second Mutation.third Mutation.publish Cat.friends Dog.friends Cat.keeper Dog.keeper
		Keeper.boss Keeper.notes Note.author Strict.inner Strict.list Scalars.same`)
	zooBatch       = strings.Fields(`Cat.keeper Note.author Strict.inner Scalars.same`)
	platformFields = strings.Fields(`Query.listAgents Query.getAgent Query.listThreads Query.getThread Query.turn Query.complianceEventByHash
		Mutation.createAgent Mutation.updateAgent Mutation.createThread Mutation.sendMessage Mutation.updateThread Mutation.publishThreadEvent
		Mutation.publishAgentActivity Agent.template Thread.agent Thread.messages Thread.turns`)
	platformBatch = strings.Fields(`Agent.template Thread.agent Thread.messages`)
)

func worlds(t testing.TB) (out []world) {
	zoo, err := newSchema(zooPrelude, zooSDL)
	require.NoError(t, err)
	platform, err := newSchema(contracts.Prelude, contracts.SDL)
	require.NoError(t, err)
	for seed := range uint64(12) {
		out = append(out, newWorld(zoo, zooSDL, zooPrelude, seed, zooFields, zooBatch...))
		out = append(out, newWorld(platform, contracts.SDL, contracts.Prelude, seed, platformFields, platformBatch...))
	}
	return out
}

var keeper = tenant.Claims{"cognito:groups": []any{"keepers"}}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// TestOracle runs generated requests through the gateway and through graphql-js and wants the same bytes.
func TestOracle(t *testing.T) {
	const requests = 1500
	all := worlds(t)
	var job struct {
		Worlds   []world     `json:"worlds"`
		Requests []generated `json:"requests"`
	}
	gateways := make([]*Gateway, len(all))
	for i, w := range all {
		var err error
		// The limits have tests of their own; the oracle has none.
		gateways[i], err = w.gateway(Config{Log: quiet(), MaxDepth: 100, MaxRootFields: 1000, MaxFields: 1 << 29, MaxIntrospection: 100, MaxAnswer: 1 << 30})
		require.NoError(t, err)
		w.SDL = w.prelude + w.SDL
		job.Worlds = append(job.Worlds, w)
		job.Requests = append(job.Requests, generated{World: i, Query: introspectionQuery})
	}
	for seed := range uint64(requests) {
		i := int(seed) % len(all)
		r := generate(all[i].schema, seed)
		if r.World = i; r.subscription {
			d := &data{Rand: (&generator{}).fresh(seed), schema: all[i].schema, wrong: 2, nulls: 5, props: propsOf(all[i])}
			r.Event = json.RawMessage(d.value(all[i].schema.Subscription.Fields[0].Type, 3))
		}
		job.Requests = append(job.Requests, r)
	}
	answers := askOracle(t, job)
	require.Len(t, answers, len(job.Requests))

	accepted, withErrors, refused := 0, 0, 0
	for i, r := range job.Requests {
		got := gateways[r.World].answerTo(t, r)
		var no struct{ Refused string }
		if json.Unmarshal(answers[i], &no) == nil && no.Refused != "" {
			refused++
			var response struct {
				Errors []struct{ ErrorType string }
				Data   any
			}
			require.NoError(t, json.Unmarshal([]byte(got), &response))
			require.Contains(t, got, `"ValidationError"`, "graphql-js refuses (%s):\n%s\n%s", no.Refused, r.Query, r.Variables)
			require.NotContains(t, got, `"data"`, "graphql-js refuses (%s):\n%s", no.Refused, r.Query)
			continue
		}
		var want string
		require.NoError(t, json.Unmarshal(answers[i], &want))
		if at := differ(want, got); at >= 0 {
			from := max(0, at-200)
			t.Fatalf("request %d:\n%s\nvariables %s\nevent %s\n\ngraphql-js: …%.500s\n\nhere:       …%.500s",
				i, r.Query, r.Variables, r.Event, want[from:], got[from:])
		}
		if accepted++; strings.Contains(want, `"errors"`) {
			withErrors++
		}
	}
	t.Logf("%d the same (%d of them with errors), %d refused by both", accepted, withErrors, refused)
	require.Greater(t, accepted, requests/2)
	require.Greater(t, withErrors, requests/10)
}

// differ is where two texts differ first; -1 when they do not.
func differ(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	if len(a) == len(b) {
		return -1
	}
	return min(len(a), len(b))
}

func (g *Gateway) answerTo(t testing.TB, r generated) string {
	request := Request{Query: r.Query, OperationName: r.OperationName, Variables: r.Variables}
	if r.Event == nil {
		return string(g.Execute(context.Background(), request, keeper, "r").append(nil))
	}
	s, refused := g.Subscribe(context.Background(), request, keeper, "r")
	if refused != nil {
		return string(refused.append(nil))
	}
	return string(s.Render(context.Background(), r.Event))
}

func askOracle(t testing.TB, job any) (answers []json.RawMessage) {
	t.Helper()
	script, err := filepath.Abs("testdata/oracle.mjs")
	require.NoError(t, err)
	input, err := json.Marshal(job)
	require.NoError(t, err)
	node := exec.Command("node", script)
	node.Dir, node.Stdin = npm.Folder(t), bytes.NewReader(input)
	var complaint bytes.Buffer
	node.Stderr = &complaint
	output, err := node.Output()
	require.NoError(t, err, complaint.String())
	require.NoError(t, json.Unmarshal(output, &answers))
	return answers
}
