package infra_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	statesHere = "arn:aws:states:" + here + ":"
	roleHere   = "arn:aws:iam::" + account + ":role/"
)

// trust is what a role's trust policy says: by which service it is taken, for what.
func trust(t *testing.T, role resource) (service string, condition map[string]map[string]any) {
	t.Helper()
	var policy struct {
		Statement []struct {
			Principal struct{ Service string }
			Condition map[string]map[string]any
		}
	}
	require.NoError(t, json.Unmarshal([]byte(role.text("assume_role_policy")), &policy))
	require.Len(t, policy.Statement, 1)
	return policy.Statement[0].Principal.Service, policy.Statement[0].Condition
}

// The scheduler may start the one state machine, and only for schedules of the tenants' group.
func TestTenantsSchedulesStartTheirStateMachine(t *testing.T) {
	p := appPlan(t)
	require.Equal(t, "agentplatform-dev-tenants", p.keyed("aws_scheduler_schedule_group", "tenants")[""].text("name"))
	require.NotEqual(t, "agentplatform-dev-tenants", p.keyed("aws_scheduler_schedule_group", "platform")[""].text("name"), "the platform's own are apart")
	service, condition := trust(t, p.keyed("aws_iam_role", "schedules")[""])
	require.Equal(t, "scheduler.amazonaws.com", service)
	require.Equal(t, map[string]map[string]any{"StringEquals": {"aws:SourceAccount": account, "aws:SourceArn": "arn:aws:scheduler:" + here + ":schedule-group/agentplatform-dev-tenants"}}, condition)
	may := allowed(t, p.keyed("aws_iam_role_policy", "schedules")[""])
	letters := "arn:aws:sqs:" + here + ":agentplatform-dev-schedule-dead-letters"
	require.Equal(t, []string{"sqs:SendMessage", "states:StartExecution"}, actions(may))
	require.Equal(t, []string{statesHere + "stateMachine:agentplatform-dev-auto-thread"}, on(may, "states:StartExecution"))
	require.Equal(t, []string{letters}, on(may, "sqs:SendMessage"))
	require.Contains(t, p.keyed("aws_sfn_state_machine", "platform"), "auto-thread")
	queue := p.keyed("aws_sqs_queue", "schedule_dead_letters")[""]
	require.Equal(t, "agentplatform-dev-schedule-dead-letters", queue.text("name"))
	require.Equal(t, true, queue.Values["sqs_managed_sse_enabled"])
	require.InDelta(t, 1209600, queue.Values["message_retention_seconds"], 0)
}

// A tenant's definition runs as a role that reaches the functions of `state routine` and nothing else.
func TestRoutinesReachTheirFunctionsOnly(t *testing.T) {
	p := appPlan(t)
	var functions []string
	for _, row := range rows().Rows {
		for _, machine := range row.Triggers("state") {
			if machine == "routine" {
				functions = append(functions, "arn:aws:lambda:"+here+":function:"+prefix+row.Name)
			}
		}
	}
	service, condition := trust(t, p.keyed("aws_iam_role", "routines")[""])
	require.Equal(t, "states.amazonaws.com", service)
	require.Equal(t, map[string]map[string]any{"StringEquals": {"aws:SourceAccount": account}, "ArnLike": {"aws:SourceArn": statesHere + "stateMachine:agentplatform-dev-routine-*"}}, condition)
	may := allowed(t, p.keyed("aws_iam_role_policy", "routines")[""])
	require.ElementsMatch(t, functions, on(may, "lambda:InvokeFunction"))
	for _, action := range actions(may) {
		assert.Regexp(t, `^(lambda:InvokeFunction|xray:.+|logs:.+)$`, action)
	}
	require.True(t, strings.HasPrefix(p.keyed("aws_cloudwatch_log_group", "routines")[""].text("name"), "/aws/vendedlogs/states/agentplatform-dev-"))
}

// Who makes schedules or state machines hands on one role each, to one service each.
func TestARoleIsHandedOnToItsServiceOnly(t *testing.T) {
	handed := map[string]string{ // role by need
		"clock":             roleHere + "agentplatform-dev-tenants-schedules",
		"workflow:machines": roleHere + "agentplatform-dev-routines",
	}
	to := map[string]string{handed["clock"]: "scheduler.amazonaws.com", handed["workflow:machines"]: "states.amazonaws.com"}
	p := appPlan(t)
	named := map[string]bool{}
	policies := map[string]resource{}
	for _, r := range p.resources() {
		switch {
		case r.Type == "aws_iam_role":
			named[roleHere+r.text("name")] = true
		case r.Type == "aws_iam_role_policy" && r.Name == "function":
			policies[r.text("role")] = r
		}
	}
	roleOf := output[map[string]string](t, p, "function_roles")
	for _, role := range handed {
		require.True(t, named[role], "there is no %s", role)
	}
	for _, row := range rows().Rows {
		var want []string
		for need, role := range handed {
			if row.Has(need) {
				want = append(want, role)
			}
		}
		may := allowed(t, policies[roleOf[row.Name]])
		assert.ElementsMatch(t, want, on(may, "iam:PassRole"), row.Name)
		for _, s := range may {
			for _, action := range s.Action {
				if action == "iam:PassRole" {
					require.Len(t, s.Resource, 1)
					assert.JSONEq(t, `{"StringEquals": {"iam:PassedToService": "`+to[s.Resource[0]]+`"}}`, string(s.Condition), row.Name)
				}
			}
		}
		for _, machine := range on(may, "states:CreateStateMachine") {
			assert.Equal(t, statesHere+"stateMachine:agentplatform-dev-routine-*", machine, "%s: nobody makes the platform's own", row.Name)
		}
		for _, run := range on(may, "states:StartExecution") {
			assert.Contains(t, []string{statesHere + "stateMachine:agentplatform-dev-routine-*", statesHere + "stateMachine:agentplatform-dev-auto-thread"}, run, row.Name)
		}
	}
}

// How a run has ended is told to each row of `event states`, without what the run was about.
func TestEventsOfRunsReachTheirFunctions(t *testing.T) {
	p := appPlan(t)
	rules, targets, permissions := p.keyed("aws_cloudwatch_event_rule", ""), p.keyed("aws_cloudwatch_event_target", ""), p.keyed("aws_lambda_permission", "states")
	count := 0
	for _, row := range rows().Rows {
		if len(row.Triggers("event")) == 0 {
			continue
		}
		count++
		var pattern struct {
			Source     []string
			DetailType []string `json:"detail-type"`
			Detail     struct {
				StateMachineArn []map[string]string
				Status          []string
			}
		}
		require.NoError(t, json.Unmarshal([]byte(rules[row.Name].text("event_pattern")), &pattern))
		require.Equal(t, []string{"aws.states"}, pattern.Source)
		require.Equal(t, []string{"Step Functions Execution Status Change"}, pattern.DetailType)
		require.Equal(t, []map[string]string{{"prefix": statesHere + "stateMachine:agentplatform-dev-routine-"}}, pattern.Detail.StateMachineArn)
		require.ElementsMatch(t, []string{"SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"}, pattern.Detail.Status)
		told := targets[row.Name].block(t, "input_transformer")
		template, _ := told["input_template"].(string)
		require.NotRegexp(t, `input|output|cause`, template)
		for name := range told["input_paths"].(map[string]any) {
			require.Contains(t, template, "<"+name+">")
		}
		require.True(t, json.Valid([]byte(strings.NewReplacer("<", `"<`, ">", `>"`).Replace(template))), template)
		require.Len(t, targets[row.Name].Values["dead_letter_config"], 1)
		require.Equal(t, prefix+row.Name, permissions[row.Name].text("function_name"))
		require.Equal(t, "events.amazonaws.com", permissions[row.Name].text("principal"))
	}
	require.Len(t, rules, count)
	require.Len(t, targets, count)
	require.Len(t, permissions, count)
}
