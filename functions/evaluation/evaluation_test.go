package evaluation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/evaluation"
	"github.com/agentplatform/agentplatform/functions/turn"
	"github.com/agentplatform/agentplatform/pkg/agentcore"
	"github.com/agentplatform/agentplatform/pkg/cloud/bedrock"
	"github.com/agentplatform/agentplatform/pkg/evaluation"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/invoke"
	"github.com/agentplatform/agentplatform/pkg/local/offline"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/sandbox"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/schema"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type args = map[string]any

// site is a tenant, the resolvers, and the functions behind them, which run when they are invoked.
type site struct {
	pgtest.World
	t       *testing.T
	p       *handlertest.Platform
	workers map[string]lambda.Handler
	running sync.WaitGroup
}

func newSite(t *testing.T) *site {
	p := handlertest.New(t)
	s := &site{World: p.DB.World(t, "acme"), t: t, p: p}
	server := httptest.NewServer(offline.New(offline.Config{}))
	client, err := bedrock.New(bedrock.Config{Region: "us-east-1", Endpoint: server.URL})
	require.NoError(t, err)
	rows, err := manifest.Parse(schema.Routes)
	require.NoError(t, err)
	s.workers = handler.Build(rows, map[string]handler.Constructor{"run-evaluation": functions.RunEvaluation, "evaluate-turn": functions.EvaluateTurn,
		"dispatch-turn": turn.DispatchTurn}, &handler.Ports{
		DB: func() *postgres.DB { return p.DB.App }, Model: func() model.Model { return client }, Publish: func() publish.Publisher { return p },
		Guardrail: func() guardrail.Guard { return nil }, Sandbox: func() sandbox.Sandbox { return nil }, ToolSecrets: func() secret.Store { return nil },
		Invoke: func() invoke.Invoker { return s }, Runtimes: func() agentcore.Runtimes { return nil }})
	t.Cleanup(func() {
		s.running.Wait()
		client.Close()
		server.Close()
	})
	return s
}

// Invoke implements invoke.Invoker: the function runs beside its caller.
func (s *site) Invoke(_ context.Context, function string, payload any) error {
	body, err := json.Marshal(payload)
	s.running.Go(func() { _, _ = s.workers[function].Invoke(context.WithoutCancel(s.t.Context()), body) }) // as a function that fails later
	return err
}

func call[R any](s *site, name string, constructor handler.Constructor, role tenant.Role, a args, sources ...any) (R, *fault.Error) {
	s.t.Helper()
	return handlertest.Call[R](s.t, s.p, name, constructor, handlertest.Claims(s.World, role), a, sources...)
}

func input(agentID string, expected ...string) args {
	cases := make([]any, len(expected))
	for i, e := range expected {
		cases[i] = args{"input": fmt.Sprintf("/say answer %d", i+1), "expected": e, "metadata": `{"n":1}`}
	}
	return args{"name": "Answers", "agentId": agentID, "cases": cases, "evaluators": []any{args{"type": "exact"},
		args{"type": "rubric", "rubric": `Says "answer".`, "modelId": offline.ModelID}}}
}

func TestAnEvaluationFromItsCasesToItsComparison(t *testing.T) {
	s := newSite(t)
	created, refused := call[evaluation.Evaluation](s, "create-evaluation", functions.CreateEvaluation, tenant.Admin, args{"input": input(s.AgentID, "answer 1", "other", "answer 3")})
	require.Nil(t, refused)
	started, refused := call[evaluation.Run](s, "start-evaluation-run", functions.StartEvaluationRun, tenant.Owner, args{"id": created.ID})
	require.Nil(t, refused)
	require.Equal(t, s.UserID, started.UserID)
	require.Equal(t, []string{"run-evaluation"}, s.p.Invoked())
	run := func(id string) evaluation.Run {
		body, err := json.Marshal(evaluation.Job{TenantID: s.TenantID, RunID: id})
		require.NoError(t, err)
		_, err = s.workers["run-evaluation"].Invoke(t.Context(), body)
		require.NoError(t, err)
		done, refused := call[evaluation.Run](s, "get-evaluation-run", functions.GetEvaluationRun, tenant.Member, args{"id": id})
		require.Nil(t, refused)
		require.Equal(t, evaluation.Finished, done.Status)
		return done
	}
	first := run(started.ID)
	require.Equal(t, []int{2, 1}, []int{first.PassedCount, first.FailedCount})

	cases := input(s.AgentID, "answer 1", "answer 2", "other")["cases"]
	changed, refused := call[evaluation.Evaluation](s, "update-evaluation", functions.UpdateEvaluation, tenant.Admin, args{"id": created.ID, "input": args{"cases": cases}})
	require.Nil(t, refused)
	require.Equal(t, 2, changed.Version)
	started, refused = call[evaluation.Run](s, "start-evaluation-run", functions.StartEvaluationRun, tenant.Owner, args{"id": created.ID, "agentId": s.AgentID})
	require.Nil(t, refused)
	second := run(started.ID)

	compared, refused := call[[]*evaluation.Comparison](s, "evaluation-run-comparison", functions.EvaluationRunComparison, tenant.Member, args{}, second, first)
	require.Nil(t, refused)
	require.Nil(t, compared[1])
	require.Equal(t, first.ID, compared[0].PreviousRunID)
	require.Equal(t, 3, compared[0].NewlyFailed[0].Number)
	require.Equal(t, 2, compared[0].NewlyPassed[0].Number)
	require.Equal(t, []evaluation.RateDelta{{Evaluator: "exact"}, {Evaluator: "rubric"}}, compared[0].Rates)

	failed, refused := call[[]page.Page[evaluation.Result]](s, "evaluation-run-results", functions.EvaluationRunResults, tenant.Member, args{"status": "failed"}, second, first)
	require.Nil(t, refused)
	require.Len(t, failed[0].Items, 1)
	require.Equal(t, 3, failed[0].Items[0].Number)
	require.Equal(t, 2, failed[1].Items[0].Number)
	require.Equal(t, "answer 2", *failed[1].Items[0].Output)
	paged, refused := call[[]page.Page[evaluation.Case]](s, "evaluation-cases", functions.EvaluationCases, tenant.Member, args{"limit": 2}, created)
	require.Nil(t, refused)
	require.Len(t, paged[0].Items, 2)
	paged, refused = call[[]page.Page[evaluation.Case]](s, "evaluation-cases", functions.EvaluationCases, tenant.Member, args{"nextToken": paged[0].NextToken}, created)
	require.Nil(t, refused)
	require.Equal(t, 3, paged[0].Items[0].Number)

	runs, refused := call[page.Page[evaluation.Run]](s, "list-evaluation-runs", functions.ListEvaluationRuns, tenant.Member, args{"evaluationId": created.ID, "limit": 1})
	require.Nil(t, refused)
	require.Equal(t, []evaluation.Run{second}, runs.Items)
	require.NotNil(t, runs.NextToken)
	listed, refused := call[page.Page[evaluation.Evaluation]](s, "list-evaluations", functions.ListEvaluations, tenant.Member, args{})
	require.Nil(t, refused)
	require.Equal(t, []evaluation.Evaluation{changed}, listed.Items)
	_, refused = call[evaluation.Run](s, "cancel-evaluation-run", functions.CancelEvaluationRun, tenant.Admin, args{"id": second.ID})
	require.Equal(t, "the run is finished", refused.Message)
	deleted, refused := call[evaluation.Evaluation](s, "delete-evaluation", functions.DeleteEvaluation, tenant.Admin, args{"id": created.ID})
	require.Nil(t, refused)
	require.Equal(t, changed, deleted)
	_, refused = call[evaluation.Evaluation](s, "get-evaluation", functions.GetEvaluation, tenant.Admin, args{"id": created.ID})
	require.Equal(t, fault.NotFound, refused.Type)
}

func TestWhoMayDoWhat(t *testing.T) {
	s := newSite(t)
	e, refused := call[evaluation.Evaluation](s, "create-evaluation", functions.CreateEvaluation, tenant.Owner, args{"input": input(s.AgentID, "x")})
	require.Nil(t, refused)
	r, refused := call[evaluation.Run](s, "start-evaluation-run", functions.StartEvaluationRun, tenant.Owner, args{"id": e.ID})
	require.Nil(t, refused)
	other := newSiteOf(s, "globex")
	for name, c := range map[string]struct {
		constructor handler.Constructor
		args        args
	}{
		"create-evaluation":     {functions.CreateEvaluation, args{"input": input(s.AgentID, "x")}},
		"update-evaluation":     {functions.UpdateEvaluation, args{"id": e.ID, "input": args{"name": "y"}}},
		"delete-evaluation":     {functions.DeleteEvaluation, args{"id": e.ID}},
		"start-evaluation-run":  {functions.StartEvaluationRun, args{"id": e.ID}},
		"cancel-evaluation-run": {functions.CancelEvaluationRun, args{"id": r.ID}},
	} {
		_, refused := call[args](s, name, c.constructor, tenant.Member, c.args)
		require.Equal(t, fault.Forbidden, refused.Type, name)
		_, refused = call[args](other, name, c.constructor, tenant.Owner, c.args)
		require.Equal(t, fault.NotFound, refused.Type, name)
	}
	for name, c := range map[string]struct {
		constructor handler.Constructor
		args        args
	}{
		"get-evaluation":       {functions.GetEvaluation, args{"id": e.ID}},
		"get-evaluation-run":   {functions.GetEvaluationRun, args{"id": r.ID}},
		"list-evaluation-runs": {functions.ListEvaluationRuns, args{"evaluationId": e.ID}},
	} {
		_, refused := call[args](s, name, c.constructor, tenant.Member, c.args)
		require.Nil(t, refused, name)
		_, refused = call[args](other, name, c.constructor, tenant.Owner, c.args)
		require.Equal(t, fault.NotFound, refused.Type, name)
	}
	cancelled, refused := call[evaluation.Run](s, "cancel-evaluation-run", functions.CancelEvaluationRun, tenant.Admin, args{"id": r.ID})
	require.Nil(t, refused)
	require.Equal(t, evaluation.Cancelled, cancelled.Status)
	_, refused = call[evaluation.Run](s, "get-evaluation-run", functions.GetEvaluationRun, tenant.Member, args{"id": ident.New()})
	require.Equal(t, fault.NotFound, refused.Type)
}

// newSiteOf is another tenant of the same platform.
func newSiteOf(s *site, slug string) *site {
	return &site{World: s.p.DB.World(s.t, slug), t: s.t, p: s.p}
}
