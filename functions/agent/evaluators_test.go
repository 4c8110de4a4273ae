package agent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/agent"
	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/evaluator"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

func TestAnAgentsEvaluators(t *testing.T) {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	owner := handlertest.Claims(w, tenant.Owner)
	update := func(evaluators any) (agent.Agent, *fault.Error) {
		return handlertest.Call[agent.Agent](t, p, "update-agent", functions.UpdateAgent, owner, args{"id": w.AgentID, "input": args{"evaluators": evaluators}})
	}
	a, err := update([]any{args{"type": "length", "maxWords": 50}, args{"name": "json", "type": "json_schema", "schema": `{"type": "object"}`}})
	require.Nil(t, err)
	require.Equal(t, "length", (*a.Evaluators)[0].Name)
	got, err := handlertest.Call[agent.Agent](t, p, "get-agent", functions.GetAgent, owner, args{"id": w.AgentID})
	require.Nil(t, err)
	require.Equal(t, a, got)
	none, err := update([]any{})
	require.Nil(t, err)
	require.Equal(t, &[]evaluator.Spec{}, none.Evaluators, "none, whatever the template has")
	template, err := update(nil)
	require.Nil(t, err)
	require.Nil(t, template.Evaluators)
	created, err := handlertest.Call[agent.Agent](t, p, "create-agent", functions.CreateAgent, owner, args{"input": args{"name": "Eve", "evaluators": []any{args{"type": "latency", "maxMs": 5000}}}})
	require.Nil(t, err)
	require.Len(t, *created.Evaluators, 1)

	for says, evaluators := range map[string][]any{
		`evaluator "exact": text is required: only the cases of an evaluation expect something`: {args{"type": "exact"}},
		`evaluator "json_schema": schema: not JSON: it ends too soon`:                           {args{"type": "json_schema", "schema": `{`}},
		`"magic" is not a type of evaluator`:                                                    {args{"type": "magic"}},
	} {
		_, err := update(evaluators)
		require.Equal(t, fault.New(fault.ValidationError, "%s", says), err)
		_, err = handlertest.Call[agent.Agent](t, p, "create-agent", functions.CreateAgent, owner, args{"input": args{"name": "x", "evaluators": evaluators}})
		require.Equal(t, says, err.Message)
	}
}
