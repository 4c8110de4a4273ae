package workflow_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/local/host"
	"github.com/agentplatform/agentplatform/pkg/local/offline"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/schedule"
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

// called are the functions that a run of auto-thread calls, and those that they invoke.
var called = []string{"open-auto-thread", "run-auto-turn", "next-auto-turn", "close-auto-thread", "dispatch-turn", "answer-callbacks"}

// hurried functions, by the beginning of their names, have timeouts with which no call can end well.
const hurried = "hurried-"

// build builds the functions for Lambda.
func build(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	args := []string{"build", "-tags", "lambda.norpc", "-o", folder + "/"}
	for _, name := range called {
		row, ok := rows(t).Row(name)
		require.True(t, ok, name)
		args = append(args, "./functions/"+row.Package+"/"+name)
	}
	build := exec.CommandContext(t.Context(), "go", args...)
	build.Dir = "../.."
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return folder
}

func rows(t testing.TB) manifest.Manifest {
	t.Helper()
	rows, err := manifest.Parse(schema.Routes)
	require.NoError(t, err)
	return rows
}

func newSite(t *testing.T, binaries string, start func(testing.TB, invoke) engine) *site {
	s := &site{t: t, db: pgtest.New(t)}
	s.World = s.db.World(t, "acme")
	model := httptest.NewServer(offline.New(offline.Config{}))
	t.Cleanup(model.Close)
	subscribers := httptest.NewServer(http.HandlerFunc(s.publish))
	t.Cleanup(subscribers.Close)

	var patient, short *host.Host
	call := func(ctx context.Context, name string, payload []byte) ([]byte, error) {
		if name, ok := strings.CutPrefix(name, hurried); ok {
			return short.Invoke(ctx, name, payload)
		}
		return patient.Invoke(ctx, name, payload)
	}
	lambda := httptest.NewServer(&host.API{Prefix: prefix, Invoke: call})
	t.Cleanup(lambda.Close)
	s.engine = start(t, call)
	environment := func(string) []string {
		return []string{"DATABASE_URL=" + s.db.AppTCPURL, "APPSYNC_URL=" + subscribers.URL, "FUNCTION_PREFIX=" + prefix, "WORKFLOW_ROLE_ARN=" + role,
			"TOOL_SECRETS_PREFIX=/tools", "TOOL_SECRETS_KEY_ID=key", "MAIL_FROM=agents@example.com",
			"AWS_ENDPOINT_URL_BEDROCK_RUNTIME=" + model.URL, "AWS_ENDPOINT_URL_LAMBDA=" + lambda.URL, "AWS_ENDPOINT_URL_SFN=" + s.engine.url,
			"AWS_REGION=" + region, "AWS_ACCESS_KEY_ID=" + key, "AWS_SECRET_ACCESS_KEY=" + key, "AWS_EC2_METADATA_DISABLED=true"}
	}
	functions := slices.DeleteFunc(host.Functions(rows(t)), func(f host.Function) bool { return !slices.Contains(called, f.Name) })
	patient = newHost(t, binaries, functions, environment)
	for i := range functions {
		functions[i].Timeout = time.Millisecond
	}
	short = newHost(t, binaries, functions, environment)
	return s
}

func newHost(t testing.TB, dir string, functions []host.Function, environment func(string) []string) *host.Host {
	t.Helper()
	h, err := host.New(host.Config{Dir: dir, Functions: slices.Clone(functions), Environment: environment, StartLimit: minute,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	require.NoError(t, err)
	t.Cleanup(h.Stop)
	return h
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

// scheduled is the input of an execution of a new schedule of the agent, which is due now.
func (s *site) scheduled(t *testing.T, fields object) object {
	t.Helper()
	said := object{"name": ident.New(), "agentId": s.AgentID, "title": "Daily", "expression": "rate(1 minute)"}
	for name, value := range fields {
		said[name] = value
	}
	var f schedule.Fields
	require.NoError(t, json.Unmarshal(text(t, said), &f))
	var made schedule.Schedule
	require.NoError(t, s.db.App.InTenant(t.Context(), s.TenantID, func(tx pgx.Tx) (err error) {
		made, err = schedule.Create(t.Context(), tx, s.TenantID, s.UserID, f)
		return err
	}))
	return object{"tenantId": s.TenantID, "scheduleId": made.ID, "occurrence": time.Now().UTC().Format("2006-01-02T15:04:05Z")}
}

// run executes auto-thread, with texts of its definition replaced by others.
func (s *site) run(t *testing.T, input object, change ...string) ended {
	t.Helper()
	machine := "auto-thread-" + ident.New()
	require.NoError(t, s.engine.Put(t.Context(), machine, strings.NewReplacer(change...).Replace(deployed(t, "auto-thread"))))
	e := execute(t.Context(), s.engine, machine, ident.New(), text(t, input))
	require.NoError(t, e.err)
	return e
}

// kept is what the database holds of an execution.
type kept struct {
	Status, ErrorType, Error, Stop string
	Thread, Title, ThreadStatus    string
	Turn, TurnError, LastMessage   string
	Messages, Callbacks            int
}

func (s *site) kept(t *testing.T, arn string) (k kept) {
	t.Helper()
	super := s.db.Superuser(t)
	require.NoError(t, super.QueryRow(t.Context(), `select e.status, coalesce(e.error_type, ''), coalesce(e.error, ''), coalesce(e.stop_reason, ''),
			coalesce(th.prefix, ''), coalesce(th.title, ''), coalesce(th.status, ''), coalesce(r.status, ''), coalesce(r.error, ''),
			coalesce((select role || ': ' || body from messages m where m.thread_uuid = th.uuid order by position desc limit 1), ''),
			(select count(*) from messages o where o.thread_uuid = th.uuid), (select count(*) from callbacks c where c.turn_id = r.id)
		from executions e left join thread_turns r on r.id = e.turn_id left join threads th on th.uuid = r.thread_uuid where e.arn = $1 and e.tenant_id = $2`, arn, s.TenantID).
		Scan(&k.Status, &k.ErrorType, &k.Error, &k.Stop, &k.Thread, &k.Title, &k.ThreadStatus, &k.Turn, &k.TurnError, &k.LastMessage, &k.Messages, &k.Callbacks))
	return k
}
