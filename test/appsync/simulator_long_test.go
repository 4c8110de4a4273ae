//go:build long

package appsync_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/appsync"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/schema"
	"github.com/agentplatform/agentplatform/test/npm"
)

// simulator hosts the SDL in Amplify's simulator over the side's functions and gives its address.
func simulator(t *testing.T, s *side) (url string) {
	t.Helper()
	folder := filepath.Join(here, "simulator")
	npm.Install(t, folder)
	bridge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		payload, err := io.ReadAll(r.Body)
		if err == nil {
			payload, err = s.functions[strings.TrimPrefix(r.URL.Path, "/")].Invoke(context.WithoutCancel(r.Context()), payload)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(payload)
	}))
	t.Cleanup(bridge.Close)
	templates := map[string]string{}
	for _, name := range []string{"request", "response", "publish"} {
		text, err := os.ReadFile(filepath.Join(here, "testdata", name+".vtl"))
		require.NoError(t, err)
		templates[name] = string(text)
	}
	fields := values{}
	for field, row := range rows(t).ByGraphQL() {
		fields[field] = values{"function": row.Name, "batch": row.Batch}
	}
	config, err := json.Marshal(values{"sdl": schema.SDL, "rows": fields, "publishing": publishing, "templates": templates, "functions": bridge.URL})
	require.NoError(t, err)

	cmd := exec.Command("node", "simulator.mjs")
	cmd.Dir = folder
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var log bytes.Buffer
	cmd.Stderr = &log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	_, err = in.Write(append(config, '\n'))
	require.NoError(t, err)
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
}

// token is an unsigned one, as of the user pool: the simulator reads it and checks nothing.
func token(t *testing.T, claims tenant.Claims) string {
	t.Helper()
	all := map[string]any{"iss": "https://cognito-idp.us-east-1.amazonaws.com/us-east-1_pool"}
	for name, value := range claims {
		all[name] = value
	}
	raw, err := json.Marshal(all)
	require.NoError(t, err)
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"none"}`)) + "." + part(raw) + ".x"
}

// post asks the simulator. Like AppSync, it also names the fields that became null because of an error; the gateway does not.
func post(t *testing.T, url string, r graphqlRequest) (answer response) {
	t.Helper()
	body, err := json.Marshal(values{"query": r.query, "variables": r.variables})
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/graphql", bytes.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", token(t, r.claims))
	request.Header.Set("X-Amzn-RequestId", r.id)
	got, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer got.Body.Close()
	require.NoError(t, json.NewDecoder(got.Body).Decode(&answer))
	answer.Errors = slices.DeleteFunc(answer.Errors, func(e graphqlError) bool {
		return strings.HasPrefix(e.Message, "Cannot return null for non-nullable field ")
	})
	for i := range answer.Errors {
		answer.Errors[i].Locations = nil
	}
	return answer
}

// texts undoes that the simulator makes a JSON text of an AWSJSON that is one already, which AppSync does not.
func texts(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if text, ok := value.(string); ok && slices.Contains([]string{"metadata", "config", "definition", "details", "input", "output", "schema", "approvedSchema", "request", "response", "value"}, name) {
				var once string
				if json.Unmarshal([]byte(text), &once) == nil {
					value = once
				}
			}
			v[name] = texts(value)
		}
	case []any:
		for i := range v {
			v[i] = texts(v[i])
		}
	}
	return v
}

// TestSimulator: Amplify's own idea of AppSync takes the SDL and the twins of the resolvers, and answers as the gateway does.
func TestSimulator(t *testing.T) {
	a, g := newSide(t, "simulator", nowhere()), newSide(t, "gateway", nowhere())
	url := simulator(t, a)
	a.execute = func(r graphqlRequest) response {
		answer := post(t, url, r)
		answer.Data = texts(answer.Data)
		return answer
	}
	own := g.gateway()
	g.execute = func(r graphqlRequest) response {
		answer := viaGateway(t, own, r)
		for i := range answer.Errors {
			answer.Errors[i].Locations = nil
		}
		return answer
	}
	done := 0
	for _, st := range script {
		if strings.Contains(st.name, "ompliance") || st.want == "InternalError" { // these need buckets, or break the database
			continue
		}
		_, simulated := a.do(st)
		_, want := g.do(st)
		require.Equal(t, want.Data, simulated.Data, st.name)
		require.Equal(t, want.types(), simulated.types(), st.name)
		for _, e := range want.Errors { // of a list that an error makes null, AppSync tells every item's, and the gateway the first
			require.Contains(t, simulated.Errors, e, st.name)
		}
		done++
	}
	require.Greater(t, done, 40)
}

// frame is one of the realtime protocol.
type frame struct {
	ID      string          `json:"id,omitempty"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// socket subscribes over the simulator's websocket and waits until it may.
func socket(t *testing.T, url string, r graphqlRequest) (*websocket.Conn, frame) {
	t.Helper()
	header, err := json.Marshal(values{"Authorization": token(t, r.claims), "host": "127.0.0.1", "x-amzn-requestid": r.id})
	require.NoError(t, err)
	conn, got, err := websocket.Dial(t.Context(), fmt.Sprintf("%s/graphql/realtime?header=%s&payload=e30=", strings.Replace(url, "http", "ws", 1), base64.URLEncoding.EncodeToString(header)),
		&websocket.DialOptions{Subprotocols: []string{"graphql-ws"}})
	require.NoError(t, err)
	if got.Body != nil {
		_ = got.Body.Close()
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	require.NoError(t, wsjson.Write(t.Context(), conn, frame{Type: "connection_init"}))
	require.Equal(t, "connection_ack", next(t, conn).Type)
	data, err := json.Marshal(values{"query": r.query, "variables": r.variables})
	require.NoError(t, err)
	payload, err := json.Marshal(values{"data": string(data), "extensions": values{"authorization": json.RawMessage(header)}})
	require.NoError(t, err)
	require.NoError(t, wsjson.Write(t.Context(), conn, frame{ID: "1", Type: "start", Payload: payload}))
	return conn, next(t, conn)
}

func next(t *testing.T, conn *websocket.Conn) (f frame) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, wsjson.Read(ctx, conn, &f))
	return f
}

// TestSimulatorSubscriptions: over its websocket, a thread's follower receives what the platform's adapter publishes for that thread, whole, and nothing of another.
func TestSimulatorSubscriptions(t *testing.T) {
	s := newSide(t, "simulator", nowhere())
	url := simulator(t, s)
	s.execute = func(r graphqlRequest) response { return post(t, url, r) }
	s.do(step{query: `mutation { createThread(input: {}) { id } }`, save: map[string]string{"one": "createThread.id"}})
	s.do(step{query: `mutation { createThread(input: {}) { id } }`, save: map[string]string{"two": "createThread.id"}})
	subscribe := func(id, as string) (*websocket.Conn, frame) {
		variables, err := json.Marshal(values{"id": id})
		require.NoError(t, err)
		return socket(t, url, graphqlRequest{query: follow, variables: variables, claims: s.claims(as), id: "follow"})
	}
	one, started := subscribe(s.known["one"], "member")
	require.Equal(t, "start_ack", started.Type, string(started.Payload))
	two, started := subscribe(s.known["two"], "owner")
	require.Equal(t, "start_ack", started.Type, string(started.Payload))
	_, refused := subscribe(s.known["two"], "globex")
	require.Equal(t, "error", refused.Type)
	require.Contains(t, string(refused.Payload), `"NotFound"`)
	require.Contains(t, string(refused.Payload), "thread not found")

	to, err := appsync.New(appsync.Config{URL: url, Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("ASIAVJKIAM-AuthRole", "SECRET", "")})
	require.NoError(t, err)
	s.do(step{query: `mutation { sendMessage(input: {threadId: "{two}", body: "Hello"}) { id } }`})
	said := "reads"
	event := func(name string, done bool) []publish.Event {
		id := s.known[name]
		return []publish.Event{
			publish.AgentStatus{TenantID: s.acme.TenantID, ThreadID: id, AgentID: s.acme.AgentID, Status: publish.Thinking, Activity: &said},
			publish.StreamChunk{TenantID: s.acme.TenantID, ThreadID: id, MessageID: ident.New(), Chunk: "\"…\"\n", Done: done},
		}
	}
	events := append(append(s.Published(), event("one", false)...), event("two", true)...)
	require.NoError(t, to.Publish(t.Context(), events...))

	received := func(conn *websocket.Conn, id string) {
		for _, e := range events {
			if e.Address().Subject != id {
				continue
			}
			got := next(t, conn)
			require.Equal(t, "data", got.Type, string(got.Payload))
			raw, err := e.MarshalJSON()
			require.NoError(t, err)
			var answer, want response
			require.NoError(t, json.Unmarshal(got.Payload, &answer))
			require.NoError(t, json.Unmarshal(raw, &want.Data))
			require.Equal(t, want.Data, texts(answer.Data.(map[string]any)["onThreadEvent"]))
		}
	}
	received(one, s.known["one"])
	received(two, s.known["two"])
}
