package appsync_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/functions"
	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/ledger"
	"github.com/agentplatform/agentplatform/pkg/gateway"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/local/workflow"
	"github.com/agentplatform/agentplatform/pkg/oauth/oauthtest"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/schema"
)

// side is one platform with two tenants and a way to ask it: AppSync's or the gateway's. Both sides do the same, each on a database of its own.
type side struct {
	*handlertest.Platform
	t            *testing.T
	name         string
	acme, globex pgtest.World
	functions    map[string]lambda.Handler // those of the graphql rows
	execute      func(graphqlRequest) response
	known        map[string]string // what steps saved, for later ones
	told         map[string]string // ids of this side → their number in order of appearance
	requests     int
	workflow     *workflow.Engine
	authority    *oauthtest.Server // of the task tracker outside
}

const operator = "ops@platform.test"

// newSide makes a platform. Its execute comes later.
func newSide(t *testing.T, name string, store *object.Store) *side {
	s := &side{Platform: handlertest.New(t, operator), t: t, name: name, functions: map[string]lambda.Handler{}, told: map[string]string{}}
	s.WithStore(store.In("audit-"+name), store.In("exports-"+name))
	s.withEngines()
	s.acme, s.globex = s.DB.World(t, "acme"), s.DB.World(t, "globex")
	s.known = map[string]string{"tenant": s.acme.TenantID, "agent": s.acme.AgentID, "foreign": s.globex.AgentID, "user": s.acme.UserID, "nobody": ident.New()}
	for _, row := range rows(t).ByGraphQL() {
		if s.functions[row.Name] == nil {
			s.functions[row.Name] = functions.Table[row.Name](s.Env(t, row.Name))
		}
	}
	return s
}

// nowhere is a store that nothing asks.
func nowhere() *object.Store {
	return object.New(object.Config{Region: "us-east-1", Endpoint: "http://127.0.0.1:1", AccessKey: "none", Secret: "none", PathStyle: true})
}

// sides are AppSync's and the gateway's.
func sides(t *testing.T, store *object.Store) (*engine, [2]*side) {
	t.Helper()
	a, g := newSide(t, "appsync", store), newSide(t, "gateway", store)
	e := start(t, a.functions)
	a.execute = func(r graphqlRequest) response {
		answer, _ := e.execute(r)
		return answer
	}
	own := g.gateway()
	g.execute = func(r graphqlRequest) response { return viaGateway(t, own, r) }
	return e, [2]*side{a, g}
}

func (s *side) gateway() *gateway.Gateway {
	g, err := gateway.New(gateway.Config{SDL: schema.SDL, Prelude: schema.Prelude, Manifest: rows(s.t), Functions: s.functions, Log: slog.New(slog.DiscardHandler)})
	require.NoError(s.t, err)
	return g
}

func viaGateway(t *testing.T, g *gateway.Gateway, r graphqlRequest) response {
	t.Helper()
	body, err := json.Marshal(values{"query": r.query, "variables": r.variables})
	require.NoError(t, err)
	_, raw := g.GraphQLHTTP(t.Context(), gateway.Post{Body: body, ContentType: "application/json", Claims: r.claims, RequestID: r.id})
	var answer response
	require.NoError(t, json.Unmarshal(raw, &answer))
	return answer
}

// claims are those of a caller's token.
func (s *side) claims(who string) tenant.Claims {
	switch who {
	case "stranger":
		return tenant.Claims{"email": "stranger@nowhere.test", "email_verified": true}
	case "operator":
		return tenant.Claims{"email": "Ops@platform.test", "email_verified": true}
	case "globex":
		return handlertest.Claims(s.globex, tenant.Owner)
	}
	return handlertest.Claims(s.acme, tenant.Role(who))
}

// step is one operation that both sides do.
type step struct {
	name  string
	as    string            // owner, member: of acme; globex: its owner; operator, stranger: of no tenant. "": owner
	query string            // with {name} for what is known
	vars  values            // values may have {name} too
	want  string            // the errors' type; "": no error
	save  map[string]string // name → path in the answer's data, to know it later
	says  values            // path in the answer's data → what is there
	first func(*side)       // what the world needs
	then  func(*side)       // puts the world in order again
}

// do runs a step; the answer's ids, times and tokens are numbered, so that the sides' answers can be compared.
func (s *side) do(st step) (raw, comparable response) {
	s.t.Helper()
	if st.first != nil {
		st.first(s)
	}
	if st.as == "" {
		st.as = "owner"
	}
	s.requests++
	request := graphqlRequest{query: s.fill(st.query), claims: s.claims(st.as), id: fmt.Sprintf("request-%d", s.requests)}
	if st.vars != nil {
		vars, err := json.Marshal(st.vars)
		require.NoError(s.t, err)
		request.variables = json.RawMessage(s.fill(string(vars)))
	}
	answer := s.execute(request)
	if st.then != nil {
		st.then(s)
	}
	sort.SliceStable(answer.Errors, func(i, j int) bool { return fmt.Sprint(answer.Errors[i].Path) < fmt.Sprint(answer.Errors[j].Path) })
	for name, path := range st.save {
		require.Empty(s.t, answer.Errors, st.name)
		s.known[name] = member(s.t, answer.Data, path)
	}
	text, err := json.Marshal(answer)
	require.NoError(s.t, err)
	require.NoError(s.t, json.Unmarshal([]byte(s.numbered(string(text))), &comparable))
	comparable.Data = private(comparable.Data)
	return answer, comparable
}

// fill puts in what is known.
func (s *side) fill(text string) string {
	for name, value := range s.known {
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	return text
}

var (
	took  = regexp.MustCompile(`(durationMs\\*":)[0-9.]+`)
	ids   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{64}\b`)
	times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z`)
)

func (s *side) numbered(text string) string {
	text = ids.ReplaceAllStringFunc(text, func(id string) string {
		if s.told[id] == "" {
			s.told[id] = fmt.Sprintf("<id %d>", len(s.told))
		}
		return s.told[id]
	})
	return took.ReplaceAllString(times.ReplaceAllString(text, "<time>"), "${1}0")
}

// private puts a mark in place of values that belong to one side alone: signed, keyed, or of its own bucket.
func private(v any) any {
	own := map[string]bool{"nextToken": true, "url": true, "manifestUrl": true, "publicKey": true, "anchorBucket": true, "command": true, "bytes": true, "complianceProof": true}
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			text, isText := value.(string)
			if isText && name == "url" && strings.HasPrefix(text, "https://mcp.") {
				continue
			}
			if own[name] && value != nil {
				v[name] = "<own>"
				continue
			}
			v[name] = private(value)
		}
	case []any:
		for i := range v {
			v[i] = private(v[i])
		}
	}
	return v
}

// member is a text in the data: createThread.id, listUsers.items.0.id.
func member(t *testing.T, data any, path string) string {
	t.Helper()
	text, ok := at(t, data, path).(string)
	require.True(t, ok, "%s in %v", path, data)
	return text
}

// at is what the data has there.
func at(t *testing.T, data any, path string) any {
	t.Helper()
	for name := range strings.SplitSeq(path, ".") {
		switch at := data.(type) {
		case map[string]any:
			data = at[name]
		case []any:
			var i int
			_, err := fmt.Sscan(name, &i)
			require.NoError(t, err)
			require.Less(t, i, len(at), path)
			data = at[i]
		default:
			require.Fail(t, "no such member", "%s in %v", path, data)
		}
	}
	return data
}

// superuser runs what no role of the platform may.
func (s *side) superuser(sql string, args ...any) {
	s.t.Helper()
	_, err := s.DB.Superuser(s.t).Exec(s.t.Context(), sql, args...)
	require.NoError(s.t, err)
}

// anchored records an event, and has the real ledger drain and anchor it.
func (s *side) anchored() {
	s.t.Helper()
	env, outbox := s.Env(s.t, "publish-anchor"), s.Env(s.t, "create-compliance-export").Outbox()
	require.NoError(s.t, outbox.InTenant(s.acme.Context, s.DB.App, s.acme.TenantID, func(tx pgx.Tx) error {
		return outbox.Record(s.acme.Context, tx, audit.Event{EventID: ident.New(), Type: audit.AgentCreated, Payload: map[string]any{"name": "Ada"}})
	}))
	now := time.Now()
	l := ledger.New(ledger.Config{DB: env.Ledger(), Bucket: env.Audit(), Signer: env.Sign(), Key: []byte(handlertest.EmissionKey), Origin: handlertest.Origin,
		Now: func() time.Time { return now }})
	require.NoError(s.t, l.Drain(s.t.Context()))
	now = now.Add(15 * time.Minute)
	require.NoError(s.t, l.PublishAnchor(s.t.Context()))
}
