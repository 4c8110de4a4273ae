package workflow_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/local/host"
	"github.com/agentplatform/agentplatform/pkg/local/offline"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/schema"
)

type object = map[string]any

// site is a tenant of a platform that is deployed as in the cloud, each part played by what speaks its wire format.
type site struct {
	pgtest.World
	t      *testing.T
	db     *pgtest.DB
	engine engine

	mu        sync.Mutex
	published []string // events, as AppSync is given them
}

// prefix is what the functions' names begin with; hurried ones have timeouts with which no call can end well.
const (
	prefix  = "agentplatform-test-"
	hurried = "hurried-"
)

func newSite(t *testing.T) *site {
	s := &site{t: t, db: pgtest.New(t)}
	s.World = s.db.World(t, "acme")

	binaries := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", "lambda.norpc", "-o", binaries+"/", "./functions/schedule/...", "./functions/turn/dispatch-turn")
	build.Dir = "../.."
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)

	model := httptest.NewServer(offline.New(offline.Config{}))
	t.Cleanup(model.Close)
	subscribers := httptest.NewServer(http.HandlerFunc(s.publish))
	t.Cleanup(subscribers.Close)

	var patient, short *host.Host
	api := &host.API{Prefix: prefix, Invoke: func(ctx context.Context, name string, payload []byte) ([]byte, error) {
		if name, ok := strings.CutPrefix(name, hurried); ok {
			return short.Invoke(ctx, name, payload)
		}
		return patient.Invoke(ctx, name, payload)
	}}
	lambda := httptest.NewServer(api)
	t.Cleanup(lambda.Close)
	functions := s.functions()
	environment := func(string) []string {
		return []string{"DATABASE_URL=" + s.db.AppTCPURL, "APPSYNC_URL=" + subscribers.URL, "AWS_ENDPOINT_URL_BEDROCK_RUNTIME=" + model.URL,
			"AWS_ENDPOINT_URL_LAMBDA=" + lambda.URL, "FUNCTION_PREFIX=" + prefix, "TOOL_SECRETS_PREFIX=/tools", "TOOL_SECRETS_KEY_ID=key", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_EC2_METADATA_DISABLED=true"}
	}
	patient = newHost(t, binaries, functions, environment)
	for i := range functions {
		functions[i].Timeout = map[string]time.Duration{"open-auto-thread": time.Millisecond, "run-auto-turn": 5 * time.Second}[functions[i].Name]
	}
	short = newHost(t, binaries, functions, environment)
	s.engine = newEngine(t, lambda.URL)
	return s
}

func newHost(t testing.TB, dir string, functions []host.Function, environment func(string) []string) *host.Host {
	t.Helper()
	h, err := host.New(host.Config{Dir: dir, Functions: append([]host.Function(nil), functions...), Environment: environment, StartLimit: minute,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	require.NoError(t, err)
	t.Cleanup(h.Stop)
	return h
}

// functions are the workflow's and the one that they invoke.
func (s *site) functions() (all []host.Function) {
	rows, err := manifest.Parse(schema.Routes)
	require.NoError(s.t, err)
	for _, f := range host.Functions(rows) {
		row, _ := rows.Row(f.Name)
		if len(row.Triggers("state")) > 0 || f.Name == "dispatch-turn" {
			all = append(all, f)
		}
	}
	return all
}

// publish is AppSync, as far as who publishes knows it.
func (s *site) publish(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var said struct{ Variables struct{ Event string } }
	_ = json.Unmarshal(body, &said)
	s.mu.Lock()
	s.published = append(s.published, said.Variables.Event)
	s.mu.Unlock()
	_, _ = io.WriteString(w, `{"data":{"publishThreadEvent":{},"publishAgentActivity":{}}}`)
}

// told reports whether subscribers were told that the thread got that status.
func (s *site) told(threadID, status string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, event := range s.published {
		var e struct {
			TypeName string `json:"__typename"`
			ThreadID string
			Thread   struct{ Status string }
		}
		if json.Unmarshal([]byte(event), &e) == nil && e.TypeName == "ThreadUpdateEvent" && e.ThreadID == threadID && e.Thread.Status == status {
			return true
		}
	}
	return false
}

// run executes auto-thread.
func (s *site) run(t *testing.T, input object, hurry ...string) execution {
	t.Helper()
	definition := deployed(t, "auto-thread", prefix)
	for _, function := range hurry {
		definition = strings.ReplaceAll(definition, prefix+function, prefix+hurried+function)
	}
	e := s.engine
	e.t = t
	return e.execute("auto-thread", definition, input)
}

// kept is what the database holds of an execution.
type kept struct {
	Status, ErrorType, Error      string
	Thread, Title, ThreadStatus   string
	Turn, TurnError, LastMessage  string
	Executions, Threads, Messages int // of this execution
}

func (s *site) kept(t *testing.T, arn string) (k kept) {
	t.Helper()
	super := s.db.Superuser(t)
	require.NoError(t, super.QueryRow(t.Context(), `select e.status, coalesce(e.error_type, ''), coalesce(e.error, ''),
			coalesce(th.prefix, ''), coalesce(th.title, ''), coalesce(th.status, ''), coalesce(r.status, ''), coalesce(r.error, ''),
			coalesce((select role || ': ' || body from messages m where m.thread_uuid = th.uuid order by position desc limit 1), ''),
			(select count(*) from executions o where o.arn = e.arn), (select count(*) from threads o where o.uuid = th.uuid),
			(select count(*) from messages o where o.thread_uuid = th.uuid)
		from executions e left join thread_turns r on r.id = e.turn_id left join threads th on th.uuid = r.thread_uuid where e.arn = $1 and e.tenant_id = $2`, arn, s.TenantID).
		Scan(&k.Status, &k.ErrorType, &k.Error, &k.Thread, &k.Title, &k.ThreadStatus, &k.Turn, &k.TurnError, &k.LastMessage, &k.Executions, &k.Threads, &k.Messages))
	return k
}

func TestAutoThread(t *testing.T) {
	s := newSite(t)
	input := func(prompt string) object {
		return object{"tenantId": s.TenantID, "agentId": s.AgentID, "prompt": prompt, "title": "Daily", "metadata": object{"team": "ops"}}
	}
	result := func(t *testing.T, text string) (r struct{ ThreadID string }) {
		t.Helper()
		require.NoError(t, json.Unmarshal([]byte(text), &r), "%q", text)
		return r
	}

	t.Run("the agent answers", func(t *testing.T) {
		x := s.run(t, input("/say All is well."))
		require.Equal(t, "SUCCEEDED", x.Status, "%s: %s", x.Error, x.Cause)
		require.Equal(t, []string{"OpenThread", "RunTurn", "CloseThread"}, x.States)
		require.Equal(t, kept{Status: "succeeded", Thread: "AUTO", Title: "Daily", ThreadStatus: "closed", Turn: "succeeded", LastMessage: "assistant: All is well.",
			Executions: 1, Threads: 1, Messages: 2}, s.kept(t, x.ARN))
		require.True(t, s.told(result(t, x.Output).ThreadID, "closed"))
	})
	t.Run("the model fails", func(t *testing.T) {
		x := s.run(t, input("/fail validation"))
		k := s.kept(t, x.ARN)
		require.NotEmpty(t, k.TurnError)
		require.Equal(t, kept{Status: "failed", ErrorType: "TurnFailed", Error: k.TurnError, Thread: "AUTO", Title: "Daily", ThreadStatus: "failed", Turn: "failed",
			TurnError: k.TurnError, LastMessage: "user: /fail validation", Executions: 1, Threads: 1, Messages: 1}, k)
		require.Equal(t, []string{"FAILED", "TurnFailed", k.TurnError}, []string{x.Status, x.Error, x.Cause})
		require.Equal(t, []string{"OpenThread", "RunTurn", "FailThread", "Outcome", "Failed"}, x.States)
	})
	t.Run("another tenant's agent", func(t *testing.T) {
		other := input("Hello")
		other["agentId"] = s.db.World(t, "globex").AgentID
		x := s.run(t, other)
		require.Equal(t, []string{"FAILED", "NotFound", "agent not found"}, []string{x.Status, x.Error, x.Cause})
		require.Equal(t, []string{"OpenThread", "FailThread", "Outcome", "Failed"}, x.States)
		require.Equal(t, kept{Status: "failed", ErrorType: "NotFound", Error: "agent not found", Executions: 1}, s.kept(t, x.ARN))
	})
	t.Run("without title and metadata", func(t *testing.T) {
		x := s.run(t, object{"tenantId": s.TenantID, "agentId": s.AgentID, "prompt": "/say Yes."})
		require.Equal(t, "SUCCEEDED", x.Status, "%s: %s", x.Error, x.Cause)
		require.Empty(t, s.kept(t, x.ARN).Title)
	})
	t.Run("a function is killed", func(t *testing.T) { // the one that opens the thread, after a millisecond
		x := s.run(t, input("/say Hello."), "open-auto-thread")
		require.Equal(t, []string{"FAILED", "InternalError", "internal error"}, []string{x.Status, x.Error, x.Cause})
		require.Equal(t, []string{"OpenThread", "FailThread", "Outcome", "Failed"}, x.States)
		k := s.kept(t, x.ARN)
		require.Equal(t, "failed", k.Status)
		if k.Thread != "" { // it had come as far as that
			require.Equal(t, []string{"failed", "failed"}, []string{k.ThreadStatus, k.Turn})
		}
	})
	t.Run("the turn takes longer than the run may", func(t *testing.T) {
		x := s.run(t, input("/slow 10000\n/say One two three four."), "run-auto-turn")
		require.Equal(t, []string{"FAILED", "TurnNotOver", "the turn took longer than a run may"}, []string{x.Status, x.Error, x.Cause})
		k := s.kept(t, x.ARN)
		require.Equal(t, []string{"failed", "failed", "failed", x.Cause}, []string{k.Status, k.ThreadStatus, k.Turn, k.TurnError})
	})
}
