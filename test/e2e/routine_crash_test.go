package e2e

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestARoutineOutlivesThePlatform: a run with two branches, in one of which an agent answers slowly, and with a person's approval behind them, goes on
// where it was when the platform is killed: while the branches work, and while the person thinks.
func TestARoutineOutlivesThePlatform(t *testing.T) {
	t.Parallel()
	p := startPlatform(t)
	alice := p.as(t, "alice")
	agent := alice.query(t, `{ listAgents(limit: 1) { items { id } } }`, nil).get("listAgents.items.0.id")
	turn := func(name, prompt string) string {
		return fmt.Sprintf(`{"StartAt":%q,"States":{%q:{"Type":"Task","Resource":"platform:run_turn","Parameters":{"agentId":%q,"prompt":%q},"ResultSelector":{"reply.$":"$.reply"},"End":true}}}`,
			name, name, agent, prompt)
	}
	definition := `{"StartAt":"Both","States":{
		"Both":{"Type":"Parallel","ResultPath":"$.both","Next":"Ask","Branches":[` + turn("Slow", "/slow 150\n/say one two three four five six seven eight") + `,` + turn("Quick", "/say Quick.") + `]},
		"Ask":{"Type":"Task","Resource":"platform:wait_for_approval","Parameters":{"prompt":"Go on?"},"ResultPath":"$.approval","Next":"Pause"},
		"Pause":{"Type":"Wait","Seconds":1,"End":true}}}`
	routine := alice.query(t, `mutation ($d: AWSJSON!) { createRoutine(input: {name: "Long", definition: $d}) { id } }`, vars{"d": definition}).get("createRoutine.id")
	run := alice.query(t, `mutation ($id: ID!) { startRoutine(id: $id, input: "{\"n\":1}") { id } }`, vars{"id": routine}).get("startRoutine.id")
	entered := func(state string) {
		require.NoError(t, until(func() (bool, error) {
			a, err := alice.ask(`query ($id: ID!) { getRoutineRun(id: $id) { steps { items { state id } } } }`, vars{"id": run})
			if err != nil {
				return false, err
			}
			var steps []struct{ State, ID string }
			if err := json.Unmarshal([]byte(a.get("getRoutineRun.steps.items")), &steps); err != nil {
				return false, fmt.Errorf("%w: %s", err, a.Raw)
			}
			for _, s := range steps {
				if s.State == state && s.ID != "" {
					return true, nil
				}
			}
			return false, nil
		}))
	}
	again := func() {
		p.kill()
		p = p.restart(t)
		alice = p.as(t, "alice")
	}
	entered("Slow")
	again()
	entered("Ask")
	again()
	var step string
	require.NoError(t, until(func() (bool, error) {
		a, err := alice.ask(`{ listRoutineApprovals { items { stepId runId } } }`, nil)
		step = a.get("listRoutineApprovals.items.0.stepId")
		return step != "", err
	}))
	alice.query(t, `mutation ($r: ID!, $s: ID!) { approveStep(runId: $r, stepId: $s, decision: APPROVED) { status } }`, vars{"r": run, "s": step})
	again()
	var a answer
	require.NoError(t, until(func() (over bool, err error) {
		a, err = alice.ask(`query ($id: ID!) { getRoutineRun(id: $id) { status output error cause steps { items { state status } } } }`, vars{"id": run})
		return a.get("getRoutineRun.status") != "running", err
	}))
	require.Equal(t, "succeeded", a.get("getRoutineRun.status"), "%s", a.Raw)
	var output struct {
		N        int
		Both     []struct{ Reply string }
		Approval struct{ Decision string }
	}
	require.NoError(t, json.Unmarshal([]byte(a.get("getRoutineRun.output")), &output))
	require.Equal(t, 1, output.N)
	require.Equal(t, "one two three four five six seven eight", output.Both[0].Reply)
	require.Equal(t, "Quick.", output.Both[1].Reply)
	require.Equal(t, "approved", output.Approval.Decision)
	threads := alice.query(t, `{ listThreads(limit: 10) { items { id channel messages { items { role } } } } }`, nil)
	require.NotContains(t, threads.Raw, `"role":"assistant"},{"role":"assistant"`, "a turn has one reply")
}
