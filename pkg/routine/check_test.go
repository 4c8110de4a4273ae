package routine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/routine"
)

func TestEveryVerbIsChecked(t *testing.T) {
	w := newWorld(t)
	other := w.db.World(t, "globex")
	weekly, err := w.create("weekly", machine("A", `"A": {"Type": "Succeed"}`))
	require.NoError(t, err)
	archived := ident.New()
	w.change(`insert into agents (tenant_id, id, name, status, system_prompt, template_id) select tenant_id, $2, 'Old', 'archived', '', template_id from agents where id = $1`, w.AgentID, archived)
	check := func(verb routine.Verb, parameters string) error {
		return routine.Check(t.Context(), w.db.App.In(w.TenantID), "mine", machine("A", `"A": `+task(verb, parameters, "")))
	}
	for name, c := range map[string]struct {
		verb       routine.Verb
		parameters string
		want       string // of the error; empty: none
	}{
		"a turn":                    {routine.RunTurn, fmt.Sprintf(`{"agentId": %q, "prompt": "Sum up.", "threadId": "CHAT-1", "title": "Daily"}`, w.AgentID), ""},
		"made by the run":           {routine.RunTurn, `{"agentId.$": "$.agent", "prompt.$": "States.Format('Sum up {}.', $.day)", "title.$": "$.title"}`, ""},
		"the state's input":         {routine.RunTurn, ``, ""},
		"null is left out":          {routine.RunTurn, fmt.Sprintf(`{"agentId": %q, "prompt": "Sum up.", "title": null}`, w.AgentID), ""},
		"no agent":                  {routine.RunTurn, `{"prompt": "Sum up."}`, "/States/A/Parameters: agentId is required"},
		"no prompt":                 {routine.RunTurn, fmt.Sprintf(`{"agentId": %q, "prompt": null}`, w.AgentID), "/States/A/Parameters/prompt: prompt must be a text"},
		"an empty prompt":           {routine.RunTurn, fmt.Sprintf(`{"agentId": %q, "prompt": " "}`, w.AgentID), "/States/A/Parameters/prompt: prompt must not be empty"},
		"a long prompt":             {routine.RunTurn, fmt.Sprintf(`{"agentId": %q, "prompt": %q}`, w.AgentID, strings.Repeat("x", 128<<10+1)), "/States/A/Parameters/prompt: prompt is longer than 131072 bytes"},
		"no id":                     {routine.RunTurn, `{"agentId": "Ada", "prompt": "Sum up."}`, "/States/A/Parameters/agentId: agentId must be an id"},
		"no such agent":             {routine.RunTurn, fmt.Sprintf(`{"agentId": %q, "prompt": "Sum up."}`, ident.New()), "/States/A/Parameters/agentId: agent not found"},
		"an archived agent":         {routine.RunTurn, fmt.Sprintf(`{"agentId": %q, "prompt": "Sum up."}`, archived), "/States/A/Parameters/agentId: agent not found"},
		"another tenant's agent":    {routine.RunTurn, fmt.Sprintf(`{"agentId": %q, "prompt": "Sum up."}`, other.AgentID), "/States/A/Parameters/agentId: agent not found"},
		"the agent in capitals":     {routine.RunTurn, fmt.Sprintf(`{"agentId": %q, "prompt": "Sum up."}`, strings.ToUpper(w.AgentID)), ""},
		"an unknown parameter":      {routine.RunTurn, fmt.Sprintf(`{"agentId": %q, "prompt": "Sum up.", "a/b": 1}`, w.AgentID), "/States/A/Parameters/a~1b: platform:run_turn has no parameter of that name"},
		"an unknown one, made":      {routine.RunTurn, fmt.Sprintf(`{"agentId": %q, "prompt": "Sum up.", "model.$": "$.m"}`, w.AgentID), "/States/A/Parameters/model.$: platform:run_turn has no parameter"},
		"the tenant":                {routine.RunTurn, fmt.Sprintf(`{"agentId": %q, "prompt": "Sum up.", "tenantId": %q}`, w.AgentID, other.TenantID), "/States/A/Parameters/tenantId"},
		"a tool":                    {routine.CallTool, fmt.Sprintf(`{"agentId": %q, "tool": "read_thread", "input": {"n.$": "$.n"}}`, w.AgentID), ""},
		"a tool's input is a text":  {routine.CallTool, fmt.Sprintf(`{"agentId": %q, "tool": "read_thread", "input": "{}"}`, w.AgentID), "/States/A/Parameters/input: input must be an object"},
		"no tool":                   {routine.CallTool, fmt.Sprintf(`{"agentId": %q}`, w.AgentID), "/States/A/Parameters: tool is required"},
		"an approval":               {routine.WaitForApproval, fmt.Sprintf(`{"prompt": "May I?", "approvers": [%q], "details": {"sum": 1}}`, w.UserID), ""},
		"approvers is no list":      {routine.WaitForApproval, fmt.Sprintf(`{"prompt": "May I?", "approvers": %q}`, w.UserID), "/States/A/Parameters/approvers: approvers must be a list of 1 to 50"},
		"an approver is no user":    {routine.WaitForApproval, fmt.Sprintf(`{"prompt": "May I?", "approvers": [%q, %q]}`, w.UserID, other.UserID), "/States/A/Parameters/approvers/1: user not found"},
		"an approver is no id":      {routine.WaitForApproval, `{"prompt": "May I?", "approvers": ["boss"]}`, "/States/A/Parameters/approvers/0: this is not a user's id"},
		"a mail":                    {routine.SendMail, `{"to": "a@acme.test", "subject": "s", "text": "t"}`, ""},
		"a mail to two":             {routine.SendMail, `{"to": ["a@acme.test", "b@acme.test"], "subject": "s", "text.$": "$.t"}`, ""},
		"a mail to nobody":          {routine.SendMail, `{"to": [], "subject": "s", "text": "t"}`, "/States/A/Parameters/to: to must be a list of 1 to 10"},
		"no address":                {routine.SendMail, `{"to": ["a@acme.test", "b"], "subject": "s", "text": "t"}`, "/States/A/Parameters/to/1: this is not an e-mail address"},
		"a routine":                 {routine.StartRoutine, fmt.Sprintf(`{"routineId": %q, "input": [1], "wait": false}`, weekly.ID), ""},
		"a routine by name":         {routine.StartRoutine, `{"routine": "weekly"}`, ""},
		"itself":                    {routine.StartRoutine, `{"routine": "mine"}`, ""},
		"no such routine":           {routine.StartRoutine, fmt.Sprintf(`{"routineId": %q}`, ident.New()), "/States/A/Parameters/routineId: routine not found"},
		"no routine of that name":   {routine.StartRoutine, `{"routine": "Weekly"}`, "/States/A/Parameters/routine: routine not found"},
		"no routine":                {routine.StartRoutine, `{"wait": true}`, "/States/A/Parameters: one of routineId and routine is required"},
		"two routines":              {routine.StartRoutine, fmt.Sprintf(`{"routineId": %q, "routine.$": "$.name"}`, weekly.ID), "/States/A/Parameters: one of routineId and routine is required"},
		"wait is a text":            {routine.StartRoutine, `{"routine": "weekly", "wait": "yes"}`, "/States/A/Parameters/wait: wait must be true or false"},
		"an unknown verb":           {"format_disk", `{}`, "/States/A/Resource: a task's Resource is one of platform:run_turn"},
		"parameters are no object":  {routine.RunTurn, `[1]`, "/States/A/Parameters"},
		"what the run makes is bad": {routine.RunTurn, `{"agentId.$": "$.agent", "prompt.$": "States.Nonsense($.day)"}`, "/States/A/Parameters/prompt.$"},
	} {
		err := check(c.verb, c.parameters)
		if c.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.Error(t, err, name)
		require.Equal(t, fault.ValidationError, fault.From(err).Type, name)
		require.Contains(t, err.Error(), c.want, name)
	}
}

func TestDefinitionsAreChecked(t *testing.T) {
	w := newWorld(t)
	turn := task(routine.RunTurn, ``, "")
	for name, c := range map[string]struct{ definition, want string }{
		"no JSON":            {`{`, "definition: "},
		"no object":          {`[]`, "definition: "},
		"no states":          {`{"StartAt": "A"}`, "States"},
		"an unknown next":    {machine("A", `"A": {"Type": "Pass", "Next": "B"}`), `/States/A/Next: `},
		"unreachable":        {machine("A", `"A": {"Type": "Succeed"}, "B": {"Type": "Succeed"}`), `/States/B`},
		"a function":         {machine("A", `"A": {"Type": "Task", "Resource": "arn:aws:lambda:eu-central-1:123456789012:function:agentplatform-send-message", "End": true}`), "/States/A/Resource: a task's Resource is one of"},
		"a service":          {machine("A", `"A": {"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage", "Parameters": {}, "End": true}`), "/States/A/Resource: a task's Resource is one of"},
		"another's rights":   {machine("A", `"A": {"Type": "Task", "Resource": "platform:run_turn", "Credentials": {"RoleArn": "arn:aws:iam::123456789012:role/admin"}, "End": true}`), "/States/A/Credentials"},
		"an activity":        {machine("A", `"A": {"Type": "Task", "Resource": "arn:aws:states:eu-central-1:123456789012:activity:a", "End": true}`), "/States/A/Resource"},
		"in a branch":        {machine("P", `"P": {"Type": "Parallel", "End": true, "Branches": [{"StartAt": "A", "States": {"A": `+turn+`}}, {"StartAt": "B", "States": {"B": `+task("x", "", "")+`}}]}`), "/States/P/Branches/1/States/B/Resource"},
		"of an item":         {machine("M", `"M": {"Type": "Map", "End": true, "ItemProcessor": {"StartAt": "A", "States": {"A": `+task(routine.CallTool, `{}`, "")+`}}}`), "/States/M/ItemProcessor/States/A/Parameters: agentId is required"},
		"of an older item":   {machine("M", `"M": {"Type": "Map", "End": true, "Iterator": {"StartAt": "A", "States": {"A": `+task("x", ``, "")+`}}}`), "/States/M/Iterator/States/A/Resource"},
		"a name with slash":  {machine("A/~", `"A/~": `+task("x", ``, "")), "/States/A~1~0/Resource"},
		"JSONata":            {`{"QueryLanguage": "JSONata", "StartAt": "A", "States": {"A": {"Type": "Succeed"}}}`, "JSONata"},
		"distributed":        {machine("M", `"M": {"Type": "Map", "End": true, "ItemReader": {"Resource": "arn:aws:states:::s3:getObject"}, "ItemProcessor": {"StartAt": "A", "States": {"A": `+turn+`}}}`), "/States/M/ItemReader"},
		"an impatient one":   {machine("A", `"A": `+task(routine.WaitForApproval, ``, `"HeartbeatSeconds": 899`)), "/States/A/HeartbeatSeconds: HeartbeatSeconds must be 900 or more"},
		"too hasty":          {machine("A", `"A": `+task(routine.RunTurn, ``, `"HeartbeatSeconds": 299`)), "/States/A/HeartbeatSeconds: HeartbeatSeconds must be 300 or more"},
		"too large":          {machine("A", `"A": {"Type": "Pass", "Comment": "`+strings.Repeat("x", routine.MaxDefinition)+`", "End": true}`), "definition is longer than 262144 bytes"},
		"too large compiled": {crowd(3000), "definition has too many tasks"},
	} {
		err := routine.Check(t.Context(), w.db.App.In(w.TenantID), "mine", c.definition)
		require.Error(t, err, name)
		require.Equal(t, fault.ValidationError, fault.From(err).Type, name)
		require.Contains(t, err.Error(), c.want, name)
	}
	err := routine.Check(t.Context(), w.db.App.In(w.TenantID), "mine", machine("P", `"P": {"Type": "Parallel", "End": true, "Branches": [`+
		strings.Repeat(`{"StartAt": "A", "States": {"A": {"Type": "Task", "Resource": "x", "End": true}}},`, 29)+`{"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}]}`))
	require.ErrorContains(t, err, " more")
	require.Less(t, len(err.Error()), 10_000, "as many problems as one reads")
	require.NoError(t, routine.Check(t.Context(), w.db.App.In(w.TenantID), "mine", crowd(1000)))
}

// crowd is a definition of n tasks in a row.
func crowd(n int) string {
	var states []string
	for i := range n {
		next := `"End": true`
		if i < n-1 {
			next = fmt.Sprintf(`"Next": "%d"`, i+1)
		}
		states = append(states, fmt.Sprintf(`"%d":%s`, i, task(routine.SendMail, "", next)))
	}
	return machine("0", strings.Join(states, ","))
}

func TestInputsOfRuns(t *testing.T) {
	for name, c := range map[string]struct {
		verb  routine.Verb
		input string
		want  string
	}{
		"a turn":        {routine.RunTurn, `{"agentId": "018f2f3e-7b1a-7c3d-8e4f-123456789abc", "prompt": "Hi"}`, ""},
		"no object":     {routine.RunTurn, `"Hi"`, "platform:run_turn takes a JSON object"},
		"null":          {routine.RunTurn, `null`, "platform:run_turn takes a JSON object"},
		"a number":      {routine.RunTurn, `{"agentId": "018f2f3e-7b1a-7c3d-8e4f-123456789abc", "prompt": 1}`, "platform:run_turn: prompt: prompt must be a text"},
		"two problems":  {routine.RunTurn, `{}`, "platform:run_turn: agentId is required; prompt is required"},
		"a path is not": {routine.RunTurn, `{"agentId.$": "$", "prompt": "x"}`, "agentId.$: platform:run_turn has no parameter"},
		"a routine":     {routine.StartRoutine, `{"routine": "a", "input": null}`, ""},
	} {
		err := routine.CheckInput(c.verb, json.RawMessage(c.input))
		if c.want == "" {
			require.NoError(t, err, name)
		} else {
			refused(t, err, fault.ValidationError, c.want)
		}
	}
}

// A run may be given as much as an engine takes; what is said of it is for people.
func TestWhatIsSaidOfAnInputIsShort(t *testing.T) {
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf(`"%d%s": 1`, i, strings.Repeat("ü", 1000)))
	}
	err := routine.CheckInput(routine.RunTurn, json.RawMessage(`{`+strings.Join(names, ",")+`}`))
	refused(t, err, fault.ValidationError, "and 82 more")
	require.Less(t, len(err.Error()), 5000)
	require.True(t, utf8.ValidString(err.Error()))
}
