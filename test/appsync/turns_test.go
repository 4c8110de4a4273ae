package appsync_test

import (
	"fmt"
	"strings"
	"time"
)

const (
	turnFields       = `id threadId agentId status model inputTokens outputTokens costUsd waitsFor retryOf error attempts queuedAt startedAt finishedAt stepsPrunedAt`
	retentionFields  = `stepsDays payloadDays evaluationDays`
	turnSteps        = ` steps { number kind name status request response startedAt finishedAt }`
	turnApprovals    = ` approvals { toolCallId name input status userId reason createdAt decidedAt }`
	turnDecisions    = ` guardrailDecisions { guardrailId stage action reason spans { kind text start end } count }`
	guardrailFields  = `id name description kind rules { stages action builtIn pattern { name pattern } topic { name phrases } } bedrock { identifier version stages } blockedInputMessage blockedOutputMessage createdAt updatedAt`
	budgetFields     = `scope scopeId name monthlyUsd tokensPerTurn month spentUsd reservedUsd remainingUsd percent warnings { scope scopeId month percent monthlyUsd spentUsd crossedAt } createdAt updatedAt`
	usageFields      = `day agentId spaceId model turns unpricedTurns inputTokens outputTokens cacheReadTokens cacheWriteTokens costUsd`
	evaluatorFields  = ` evaluators { name type text texts match ignoreCase pattern schema minCharacters maxCharacters minWords maxWords maxMs maxMicros rubric modelId }`
	evaluationFields = `id name agentId concurrency passThreshold caseCount version createdAt updatedAt` + evaluatorFields
	caseFields       = ` cases { items { number input expected metadata } nextToken }`
	runFields        = `id evaluationId number version agentId status concurrency passThreshold caseCount waitingCount runningCount passedCount failedCount cancelledCount passRate rates { evaluator passedCount caseCount passRate averageScore } inputTokens outputTokens costUsd gradingInputTokens gradingOutputTokens gradingCostUsd userId createdAt finishedAt` + evaluatorFields
	resultFields     = ` results { items { number status input expected metadata threadId turnId output scores { evaluator score reason } error finishedAt } nextToken }`
	comparisonFields = ` comparison { previousRunId previousNumber previousAgentId passRateDelta rates { evaluator passRateDelta } newlyFailed { number } newlyPassed { number threadId previousNumber previousThreadId } addedCount removedCount }`
)

// turns are a turn that waits for a person, one that is cancelled and repeated, and what their records say.
var turns = []step{
	{name: "createAgent, granted and rated", query: `mutation ($input: CreateAgentInput!) { createAgent(input: $input) { id guardrailId tools toolApprovals fetchHosts` + evaluatorFields + ` } }`,
		vars: values{"input": values{"name": "Careful", "tools": []string{"read_*", "http_fetch"}, "toolApprovals": []string{"read_thread"}, "fetchHosts": []string{"*.acme.test"}, "evaluators": []any{
			values{"type": "json_schema", "schema": `{"type": "object", "required": ["a"]}`}, values{"name": "any", "type": "json_schema", "schema": `true`}, values{"type": "length", "maxWords": 9, "schema": nil}}}},
		says: values{"createAgent.toolApprovals.0": "read_thread", "createAgent.evaluators.1.schema": "true", "createAgent.evaluators.2.maxWords": 9.0},
		save: map[string]string{"careful": "createAgent.id"}},
	{name: "createAgent, a schema that is none", query: `mutation ($input: CreateAgentInput!) { createAgent(input: $input) { id } }`,
		vars: values{"input": values{"name": "No", "evaluators": []any{values{"type": "json_schema", "schema": `{"type": 7}`}}}}, want: "ValidationError"},
	{name: "createAgent, a schema in the query", query: `mutation { createAgent(input: {name: "Strict", evaluators: [{type: json_schema, schema: "{\"type\":\"array\"}"}]}) { evaluators { schema } } }`,
		says: values{"createAgent.evaluators.0.schema": `{"type":"array"}`}},
	{name: "updateAgent to its template's", query: `mutation { updateAgent(id: "{careful}", input: {evaluators: null, fetchHosts: null}) { evaluators { name } fetchHosts tools } }`,
		says: values{"updateAgent.evaluators": nil, "updateAgent.tools.0": "read_*"}},
	{name: "createThread for the careful", query: `mutation { createThread(input: {agentId: "{careful}"}) { id } }`, save: map[string]string{"risky": "createThread.id"}},
	{name: "sendMessage that calls tools", query: `mutation ($input: SendMessageInput!) { sendMessage(input: $input) { turnId } }`, save: map[string]string{"asking": "sendMessage.turnId"},
		vars: values{"input": values{"threadId": "{risky}", "body": `/tool read_thread {"threadId": "{thread}", "limit": 1}` + "\n" + `/tool read_thread {"threadId": "{thread}", "limit": 2}`}}},
	{name: "turn that waits", query: `{ turn(id: "{asking}") { ` + turnFields + turnApprovals + turnSteps + ` } }`, first: runs("asking"),
		says: values{"turn.status": "waiting", "turn.waitsFor": "approval", "turn.approvals.1.status": "pending", "turn.approvals.1.input": `{"threadId":"CHAT-1","limit":2}`, "turn.steps.1.status": "waiting"},
		save: map[string]string{"call": "turn.approvals.0.toolCallId", "other": "turn.approvals.1.toolCallId"}},
	{name: "approveToolCall", as: "member", query: `mutation { approveToolCall(turnId: "{asking}", toolCallId: "{call}") { status` + turnApprovals + ` } }`,
		says: values{"approveToolCall.approvals.0.status": "approved", "approveToolCall.status": "waiting"}},
	{name: "approveToolCall of nobody", query: `mutation { approveToolCall(turnId: "{asking}", toolCallId: "x") { id } }`, want: "NotFound"},
	{name: "approveToolCall of another tenant", as: "globex", query: `mutation { approveToolCall(turnId: "{asking}", toolCallId: "{call}") { id } }`, want: "NotFound"},
	{name: "denyToolCall that was approved", query: `mutation { denyToolCall(turnId: "{asking}", toolCallId: "{call}") { id } }`, want: "ValidationError"},
	{name: "denyToolCall", query: `mutation ($reason: String) { denyToolCall(turnId: "{asking}", toolCallId: "{other}", reason: $reason) { status waitsFor` + turnApprovals + ` } }`,
		vars: values{"reason": "not \"that\" one"}, says: values{"denyToolCall.approvals.1.reason": `not "that" one`, "denyToolCall.status": "running", "denyToolCall.waitsFor": nil}},
	{name: "turn that went on", query: `{ turn(id: "{asking}") { ` + turnFields + turnSteps + ` toolOutcomes { toolCallId name status error } phases { name } } }`, first: runs("asking"),
		says: values{"turn.status": "succeeded", "turn.steps.1.name": "read_thread", "turn.steps.1.request": `{"threadId":"CHAT-1","limit":1}`, "turn.steps.3.kind": "model", "turn.toolOutcomes.0.status": "ok",
			"turn.toolOutcomes.1.status": "denied"}},
	{name: "Turn.steps of each", query: `{ listThreads(limit: 2) { items { turns { items { status` + turnSteps + ` } } } } }`},

	{name: "sendMessage that is given up", query: `mutation { sendMessage(input: {threadId: "{risky}", body: "Never mind"}) { turnId } }`, save: map[string]string{"given": "sendMessage.turnId"}},
	{name: "cancelTurn", as: "member", query: `mutation { cancelTurn(id: "{given}") { ` + turnFields + ` } }`, says: values{"cancelTurn.status": "cancelled"}},
	{name: "cancelTurn that is over", query: `mutation { cancelTurn(id: "{asking}") { id } }`, want: "ValidationError"},
	{name: "cancelTurn of another tenant", as: "globex", query: `mutation { cancelTurn(id: "{given}") { id } }`, want: "NotFound"},
	{name: "retryTurn", query: `mutation { retryTurn(id: "{given}") { ` + turnFields + ` } }`, says: values{"retryTurn.status": "queued"}, save: map[string]string{"again": "retryTurn.id"}},
	{name: "retryTurn of one that is not the last", query: `mutation { retryTurn(id: "{given}") { id } }`, want: "ValidationError"},
	{name: "turn that was repeated", query: `{ turn(id: "{again}") { status retryOf` + turnSteps + ` } }`, first: runs("again"), says: values{"turn.status": "succeeded", "turn.steps.0.kind": "model"}},
	{name: "Turn.steps fails", query: `{ turn(id: "{again}") { status steps { number } } }`, want: "InternalError",
		first: func(s *side) { s.superuser(`alter table turn_steps rename to lost`) }, then: func(s *side) { s.superuser(`alter table lost rename to turn_steps`) }},
}

// guardrails are one that masks what an agent is asked.
var guardrails = []step{
	{name: "createGuardrail", query: `mutation ($input: CreateGuardrailInput!) { createGuardrail(input: $input) { ` + guardrailFields + ` } }`, save: map[string]string{"guardrail": "createGuardrail.id"},
		vars: values{"input": values{"name": "Support", "kind": "RULES", "blockedInputMessage": "No.", "rules": []any{
			values{"stages": []string{"input", "output"}, "action": "mask", "builtIn": []string{"EMAIL", "IBAN"}},
			values{"stages": []string{"tool_input"}, "action": "block", "pattern": values{"name": "number", "pattern": `EMP-\d{6}`}},
			values{"stages": []string{"input"}, "action": "block", "topic": values{"name": "pay", "phrases": []string{"salary", "\"wages\""}}}}}},
		says: values{"createGuardrail.rules.1.pattern.pattern": `EMP-\d{6}`, "createGuardrail.rules.2.builtIn": []any{}}},
	{name: "createGuardrail of Bedrock's", query: `mutation { createGuardrail(input: {name: "Managed", kind: BEDROCK, bedrock: {identifier: "abc", version: "1"}}) { ` + guardrailFields + ` } }`,
		says: values{"createGuardrail.bedrock.stages.3": "output"}, save: map[string]string{"managed": "createGuardrail.id"}},
	{name: "createGuardrail without rules", query: `mutation { createGuardrail(input: {name: "x", kind: RULES}) { id } }`, want: "ValidationError"},
	{name: "createGuardrail by a member", as: "member", query: `mutation { createGuardrail(input: {name: "x", kind: RULES, rules: [{stages: [input], action: mask, builtIn: [EMAIL]}]}) { id } }`, want: "Forbidden"},
	{name: "updateGuardrail", query: `mutation ($input: UpdateGuardrailInput!) { updateGuardrail(id: "{guardrail}", input: $input) { ` + guardrailFields + ` } }`,
		vars: values{"input": values{"description": "For support", "blockedInputMessage": nil}}, says: values{"updateGuardrail.description": "For support", "updateGuardrail.blockedInputMessage": nil}},
	{name: "updateGuardrail of another tenant", as: "globex", query: `mutation { updateGuardrail(id: "{guardrail}", input: {name: "x"}) { id } }`, want: "NotFound"},
	{name: "listGuardrails", as: "member", query: `{ listGuardrails(limit: 10) { items { ` + guardrailFields + ` } nextToken } }`, says: values{"listGuardrails.items.1.name": "Support"}},
	{name: "listGuardrails, no page", query: `{ listGuardrails(limit: 101) { nextToken } }`, want: "ValidationError"},
	{name: "getGuardrail", as: "member", query: `{ getGuardrail(id: "{guardrail}") { ` + guardrailFields + ` } }`, says: values{"getGuardrail.kind": "RULES"}},
	{name: "getGuardrail of another tenant", as: "globex", query: `{ getGuardrail(id: "{guardrail}") { id } }`, want: "NotFound"},
	{name: "updateAgent, guarded", query: `mutation { updateAgent(id: "{careful}", input: {guardrailId: "{guardrail}"}) { guardrailId template { guardrailId } } }`},
	{name: "sendMessage to the guarded", query: `mutation { sendMessage(input: {threadId: "{risky}", body: "/say Mail to ada@acme.test"}) { turnId } }`, save: map[string]string{"masked": "sendMessage.turnId"}},
	{name: "turn that was masked", query: `{ turn(id: "{masked}") { ` + turnFields + turnDecisions + turnSteps + ` } }`, first: runs("masked"),
		says: values{"turn.status": "succeeded", "turn.guardrailDecisions.0.action": "mask", "turn.guardrailDecisions.0.spans.0.kind": "EMAIL", "turn.guardrailDecisions.0.spans.0.start": 13.0}},
	{name: "deleteGuardrail that is used", query: `mutation { deleteGuardrail(id: "{guardrail}") { id } }`, want: "ValidationError"},
	{name: "deleteGuardrail", query: `mutation { deleteGuardrail(id: "{managed}") { ` + guardrailFields + ` } }`},
}

// days are from yesterday to tomorrow, so that the day may end meanwhile.
var days = fmt.Sprintf(`from: "%s", to: "%s"`, time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly), time.Now().UTC().AddDate(0, 0, 1).Format(time.DateOnly))

// budgets are one that covers no turn, what the turns before it used, and for how long that is kept.
var budgets = []step{
	{name: "usage", as: "member", query: `{ usage(` + days + `, groupBy: [AGENT, MODEL], filter: {agentId: "{careful}"}) { items { ` + usageFields + ` } total { ` + usageFields + ` } warnings { percent } } }`,
		says: values{"usage.items.0.model": "offline.echo-1", "usage.items.0.turns": 3.0, "usage.items.0.day": nil, "usage.total.unpricedTurns": 1.0}},
	{name: "usage, too long ago", query: `{ usage(from: "2020-01-01", to: "2022-01-01") { total { turns } } }`, want: "ValidationError"},
	{name: "setBudget", query: `mutation ($input: SetBudgetInput!) { setBudget(input: $input) { ` + budgetFields + ` } }`,
		vars: values{"input": values{"scope": "AGENT", "scopeId": "{careful}", "monthlyUsd": "0.000001", "tokensPerTurn": 5000}},
		says: values{"setBudget.name": "Careful", "setBudget.monthlyUsd": "0.000001", "setBudget.tokensPerTurn": 5000.0, "setBudget.remainingUsd": "0.000000", "setBudget.warnings.2.percent": 100.0}},
	{name: "setBudget by a member", as: "member", query: `mutation { setBudget(input: {scope: TENANT, monthlyUsd: "1"}) { scope } }`, want: "Forbidden"},
	{name: "setBudget, no amount", query: `mutation { setBudget(input: {scope: TENANT, monthlyUsd: "1e3"}) { scope } }`, want: "ValidationError"},
	{name: "sendMessage beyond the budget", query: `mutation { sendMessage(input: {threadId: "{risky}", body: "Hello"}) { id } }`, want: "BudgetExceeded"},
	{name: "listBudgets", as: "member", query: `{ listBudgets { items { ` + budgetFields + ` } nextToken } }`, says: values{"listBudgets.items.0.scope": "AGENT"}},
	{name: "listBudgets, no page", query: `{ listBudgets(limit: 0) { nextToken } }`, want: "ValidationError"},
	{name: "usage with its warnings", query: `{ usage(` + days + `) { items { turns } total { costUsd } warnings { scope percent monthlyUsd } } }`, says: values{"usage.warnings.0.scope": "AGENT"}},
	{name: "setRetention", query: `mutation ($input: SetRetentionInput!) { setRetention(input: $input) { ` + retentionFields + ` } }`, vars: values{"input": values{"stepsDays": 30, "payloadDays": nil}},
		says: values{"setRetention.stepsDays": 30.0, "setRetention.payloadDays": 90.0}},
	{name: "setRetention by a member", as: "member", query: `mutation { setRetention(input: {stepsDays: 1}) { stepsDays } }`, want: "Forbidden"},
	{name: "setRetention, too long", query: `mutation { setRetention(input: {evaluationDays: 3651}) { stepsDays } }`, want: "ValidationError"},
	{name: "retention", as: "member", query: `{ retention { ` + retentionFields + ` } }`, says: values{"retention.stepsDays": 30.0, "retention.evaluationDays": 365.0}},
	{name: "retention without a tenant", as: "stranger", query: `{ retention { stepsDays } }`, want: "Forbidden"},
	{name: "setBudget, taken away", query: `mutation { setBudget(input: {scope: AGENT, scopeId: "{careful}", monthlyUsd: null, tokensPerTurn: null}) { scope } }`, says: values{"setBudget": nil}},

	{name: "setRetention", query: `mutation ($input: SetRetentionInput!) { setRetention(input: $input) { stepsDays payloadDays evaluationDays } }`, vars: values{"input": values{"stepsDays": 30, "payloadDays": nil}},
		says: values{"setRetention": values{"stepsDays": 30.0, "payloadDays": 90.0, "evaluationDays": 365.0}}},
	{name: "setRetention by a member", as: "member", query: `mutation { setRetention(input: {stepsDays: 1}) { stepsDays } }`, want: "Forbidden"},
	{name: "setRetention to nothing", query: `mutation { setRetention(input: {stepsDays: 0}) { stepsDays } }`, want: "ValidationError"},
	{name: "retention", as: "member", query: `{ retention { stepsDays payloadDays evaluationDays } }`, says: values{"retention.stepsDays": 30.0}},
	{name: "retention without a tenant", as: "stranger", query: `{ retention { stepsDays } }`, want: "Forbidden"},
}

// evaluations are one with two runs that are compared, and a third that is cancelled.
var evaluations = []step{
	{name: "createEvaluation", query: `mutation ($input: CreateEvaluationInput!) { createEvaluation(input: $input) { ` + evaluationFields + caseFields + ` } }`, save: map[string]string{"evaluation": "createEvaluation.id"},
		vars: values{"input": values{"name": "Answers", "agentId": "{agent}", "concurrency": 1, "evaluators": []any{values{"type": "exact"}, values{"type": "json_schema", "schema": `{"type": "array", "items": {"enum": [1, "ü"]}}`},
			values{"type": "rubric", "rubric": `Says "1".`, "modelId": "offline.echo-1"}}, "cases": []any{
			values{"input": `/say [1]`, "expected": "[1]", "metadata": `{"n": [1, {"ü": null}]}`}, values{"input": `/say [2]`, "expected": "[1]", "metadata": nil}}}},
		says: values{"createEvaluation.cases.items.0.expected": "[1]", "createEvaluation.evaluators.1.type": "json_schema", "createEvaluation.caseCount": 2.0}},
	{name: "createEvaluation, metadata is a list", query: `mutation ($input: CreateEvaluationInput!) { createEvaluation(input: $input) { id } }`, want: "ValidationError",
		vars: values{"input": values{"name": "No", "agentId": "{agent}", "evaluators": []any{values{"type": "length", "minWords": 1}}, "cases": []any{values{"input": "a", "metadata": "[1]"}}}}},
	{name: "createEvaluation by a member", as: "member", query: `mutation { createEvaluation(input: {name: "No", agentId: "{agent}", cases: [{input: "a"}], evaluators: [{type: length, minWords: 1}]}) { id } }`, want: "Forbidden"},
	{name: "getEvaluation", as: "member", query: `{ getEvaluation(id: "{evaluation}") { ` + evaluationFields + caseFields + ` } }`, says: values{"getEvaluation.cases.items.1.input": `/say [2]`, "getEvaluation.cases.items.1.metadata": nil}},
	{name: "getEvaluation of another tenant", as: "globex", query: `{ getEvaluation(id: "{evaluation}") { id cases { nextToken } } }`, want: "NotFound"},
	{name: "Evaluation.cases, no page", query: `{ getEvaluation(id: "{evaluation}") { cases(limit: 0) { nextToken } } }`, want: "ValidationError"},
	{name: "listEvaluations", as: "member", query: `{ listEvaluations { items { ` + evaluationFields + caseFields + ` } nextToken } }`, says: values{"listEvaluations.items.0.name": "Answers"}},
	{name: "listEvaluations, no page", query: `{ listEvaluations(limit: 0) { nextToken } }`, want: "ValidationError"},
	{name: "runEvaluation", query: `mutation { runEvaluation(id: "{evaluation}") { ` + runFields + resultFields + ` } }`, save: map[string]string{"run1": "runEvaluation.id"},
		says: values{"runEvaluation.status": "running", "runEvaluation.waitingCount": 2.0, "runEvaluation.results.items.1.status": "waiting", "runEvaluation.passRate": nil}},
	{name: "runEvaluation twice", query: `mutation { runEvaluation(id: "{evaluation}", agentId: null) { id } }`, want: "ValidationError"},
	{name: "deleteEvaluation while it runs", query: `mutation { deleteEvaluation(id: "{evaluation}") { id } }`, want: "ValidationError"},
	{name: "getEvaluationRun", as: "member", query: `{ getEvaluationRun(id: "{run1}") { ` + runFields + resultFields + comparisonFields + ` } }`, first: evaluates("run1"),
		says: values{"getEvaluationRun.status": "finished", "getEvaluationRun.passRate": 0.5, "getEvaluationRun.results.items.0.status": "passed", "getEvaluationRun.results.items.0.output": "[1]",
			"getEvaluationRun.results.items.1.scores.1.score": 0.0, "getEvaluationRun.comparison": nil}},
	{name: "EvaluationRun.results, those that failed", query: `{ getEvaluationRun(id: "{run1}") { results(status: failed, limit: 1) { items { number status } nextToken } } }`,
		says: values{"getEvaluationRun.results.items.0.number": 2.0}},
	{name: "EvaluationRun.results, no page", query: `{ getEvaluationRun(id: "{run1}") { number results(limit: 0) { nextToken } } }`, want: "ValidationError"},
	{name: "getEvaluationRun of another tenant", as: "globex", query: `{ getEvaluationRun(id: "{run1}") { id } }`, want: "NotFound"},
	{name: "updateEvaluation", query: `mutation ($input: UpdateEvaluationInput!) { updateEvaluation(id: "{evaluation}", input: $input) { ` + evaluationFields + caseFields + ` } }`, says: values{"updateEvaluation.version": 2.0},
		vars: values{"input": values{"passThreshold": nil, "evaluators": []any{values{"type": "exact"}}, "cases": []any{values{"input": `/say [1]`, "expected": "[1]"}, values{"input": `/say [2]`, "expected": "[2]", "metadata": `{}`}}}}},
	{name: "updateEvaluation by a member", as: "member", query: `mutation { updateEvaluation(id: "{evaluation}", input: {name: "x"}) { id } }`, want: "Forbidden"},
	{name: "runEvaluation with another agent", query: `mutation { runEvaluation(id: "{evaluation}", agentId: "{careful}") { id agentId } }`, save: map[string]string{"run2": "runEvaluation.id"}},
	{name: "getEvaluationRun, compared", query: `{ getEvaluationRun(id: "{run2}") { ` + runFields + comparisonFields + ` } }`, first: evaluates("run2"),
		says: values{"getEvaluationRun.passRate": 1.0, "getEvaluationRun.comparison.passRateDelta": 0.5, "getEvaluationRun.comparison.newlyPassed.0.number": 2.0}},
	{name: "listEvaluationRuns", as: "member", query: `{ listEvaluationRuns(evaluationId: "{evaluation}") { items { ` + runFields + resultFields + comparisonFields + ` } nextToken } }`,
		says: values{"listEvaluationRuns.items.0.number": 2.0, "listEvaluationRuns.items.1.comparison": nil}},
	{name: "listEvaluationRuns of another tenant", as: "globex", query: `{ listEvaluationRuns(evaluationId: "{evaluation}") { nextToken } }`, want: "NotFound"},
	{name: "runEvaluation, a third time", query: `mutation { runEvaluation(id: "{evaluation}") { id } }`, save: map[string]string{"run3": "runEvaluation.id"}},
	{name: "cancelEvaluationRun", query: `mutation { cancelEvaluationRun(id: "{run3}") { ` + runFields + resultFields + ` } }`, says: values{"cancelEvaluationRun.status": "cancelled", "cancelEvaluationRun.cancelledCount": 2.0}},
	{name: "cancelEvaluationRun that is over", query: `mutation { cancelEvaluationRun(id: "{run2}") { id } }`, want: "ValidationError"},
	{name: "EvaluationRun.comparison of each fails", query: `{ listEvaluationRuns(evaluationId: "{evaluation}") { items { number comparison { addedCount } } } }`, want: "InternalError",
		first: func(s *side) { s.superuser(`alter table evaluation_results rename column key to lost`) },
		then:  func(s *side) { s.superuser(`alter table evaluation_results rename column lost to key`) }},
	{name: "deleteEvaluation", query: `mutation { deleteEvaluation(id: "{evaluation}") { ` + evaluationFields + ` } }`},
	{name: "deleteEvaluation again", query: `mutation { deleteEvaluation(id: "{evaluation}") { id } }`, want: "NotFound"},
	{name: "evaluators that are too many", query: `mutation { updateAgent(id: "{careful}", input: {evaluators: [` + strings.Repeat(`{type: length, maxWords: 1} `, 11) + `]}) { id } }`, want: "ValidationError"},
}
