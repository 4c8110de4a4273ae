package routine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentplatform/agentplatform/pkg/workflow"
	"github.com/agentplatform/agentplatform/pkg/workflow/asl"
)

// Target is what a definition is compiled for.
type Target struct {
	TenantID  string
	RoutineID string
	Version   int
	Function  string // the name of begin-step in this deployment
}

// Machine is the name of the version's state machine.
func (t Target) Machine() string { return MachineName(t.RoutineID, t.Version) }

// MachinePrefix is what the names of routines' machines begin with.
const MachinePrefix = "routine-"

// MachineName is the name of a version's state machine: its own, for an engine forgets a machine's runs with it.
func MachineName(routineID string, version int) string {
	return MachinePrefix + routineID + "-" + strconv.Itoa(version)
}

// Call is what begin-step is called with: one attempt of a task. Who is called with the same token again has been called for the same attempt.
type Call struct {
	TenantID  string          `json:"tenantId"`
	RoutineID string          `json:"routineId"`
	Version   int             `json:"version"`
	RunID     string          `json:"runId"`
	State     string          `json:"state"` // its name
	Verb      Verb            `json:"verb"`
	Entered   time.Time       `json:"entered"` // when the state was entered, to the millisecond
	Attempt   int             `json:"attempt"` // how often it was tried before
	Token     string          `json:"token"`   // of the task: whoever has it answers
	Input     json.RawMessage `json:"input"`   // what the verb is told; CheckInput says whether it can be
}

// How long a task may take where its author does not say.
const (
	stepTimeout   = 7 * 24 * 60 * 60 // seconds
	stepHeartbeat = 10 * 60          // seconds without a sign of life
	minHeartbeat  = 5 * 60           // seconds that an author may say: signs come every minute or two
	minPatience   = 15 * 60          // the same, of an approval: signs come every five minutes or six
)

// Compile makes the state machine of a definition: each task becomes a call of begin-step, which is handed a token to answer it with. It takes nothing for
// granted: what is no task of a verb, in the fields that a task may have, is a *workflow.DefinitionError.
func Compile(definition string, t Target) (string, error) {
	decoded, err := asl.Decode(json.RawMessage(definition))
	if err != nil {
		return "", err
	}
	machine, _ := decoded.(map[string]any)
	c := compiler{target: t, refused: new(workflow.DefinitionError)}
	c.states("", machine)
	if len(c.refused.Problems) > 0 {
		return "", c.refused
	}
	return string(asl.Encode(machine)), nil
}

type compiler struct {
	target  Target
	refused *workflow.DefinitionError
}

func (c compiler) refuse(place, format string, args ...any) {
	c.refused.Problems = append(c.refused.Problems, workflow.Problem{Location: place, Message: fmt.Sprintf(format, args...)})
}

// states compiles the tasks of a definition, a branch or a processor, where they are.
func (c compiler) states(place string, machine map[string]any) {
	states, ok := machine["States"].(map[string]any)
	if !ok {
		c.refuse(place, "States must be an object")
		return
	}
	for _, name := range sorted(states) {
		at := place + "/States/" + escape(name)
		state, ok := states[name].(map[string]any)
		switch {
		case !ok:
			c.refuse(at, "a state must be an object")
		case state["Type"] == "Task":
			states[name] = c.task(at, name, state)
		default:
			branches, _ := state["Branches"].([]any)
			for i, b := range branches {
				branch, _ := b.(map[string]any)
				c.states(at+"/Branches/"+strconv.Itoa(i), branch)
			}
			for _, field := range []string{"ItemProcessor", "Iterator"} {
				if processor, ok := state[field]; ok {
					p, _ := processor.(map[string]any)
					c.states(at+"/"+field, p)
				}
			}
		}
	}
}

// taskFields are kept as their author wrote them; Resource and Parameters are compiled. No other may be there: some change whose rights a task has.
var taskFields = []string{"Type", "Comment", "Next", "End", "InputPath", "ResultSelector", "ResultPath", "OutputPath", "Retry", "Catch", "TimeoutSeconds",
	"TimeoutSecondsPath", "HeartbeatSeconds", "HeartbeatSecondsPath"}

// unreached is what a call of begin-step fails of without begin-step having said so.
var unreached = []any{"Lambda.ClientExecutionTimeoutException", "Lambda.ServiceException", "Lambda.AWSLambdaException", "Lambda.SdkClientException",
	"Lambda.TooManyRequestsException"}

func (c compiler) task(place, name string, author map[string]any) map[string]any {
	resource, _ := author["Resource"].(string)
	verb, ok := ParseResource(resource)
	if !ok {
		c.refuse(place+"/Resource", "a task's Resource is one of %s", resources())
	}
	task := map[string]any{"Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken"}
	for _, field := range sorted(author) {
		switch {
		case slices.Contains(taskFields, field):
			task[field] = author[field]
		case field != "Resource" && field != "Parameters":
			c.refuse(place+"/"+escape(field), "a task has no such field")
		}
	}
	switch n, ok := seconds(author["HeartbeatSeconds"]); {
	case ok && verb.Beats() && n < minHeartbeat:
		c.refuse(place+"/HeartbeatSeconds", "HeartbeatSeconds must be %d or more: the platform says every minute or two that a task goes on", minHeartbeat)
	case ok && !verb.Beats() && n < minPatience:
		c.refuse(place+"/HeartbeatSeconds", "HeartbeatSeconds must be %d or more: the platform says every five minutes or six that it waits for a person", minPatience)
	}
	payload := map[string]any{"tenantId": c.target.TenantID, "routineId": c.target.RoutineID, "version": asl.Number(c.target.Version), "verb": string(verb), "state": name,
		"runId.$": "$$.Execution.Name", "entered.$": "$$.State.EnteredTime", "attempt.$": "$$.State.RetryCount", "token.$": "$$.Task.Token"}
	if parameters, ok := author["Parameters"]; ok {
		payload["input"] = parameters
	} else {
		payload["input.$"] = "$"
	}
	task["Parameters"] = map[string]any{"FunctionName": c.target.Function, "Payload": payload}
	again, _ := author["Retry"].([]any)
	task["Retry"] = append([]any{map[string]any{"ErrorEquals": unreached, "IntervalSeconds": asl.Number(2), "MaxAttempts": asl.Number(6), "BackoffRate": asl.Number(2),
		"MaxDelaySeconds": asl.Number(60), "JitterStrategy": "FULL"}}, again...)
	limits(task, verb)
	return task
}

// limits gives a task the times that its author has left out. A heartbeat must come sooner than the end.
func limits(task map[string]any, v Verb) {
	timeout, timed := seconds(task["TimeoutSeconds"])
	heartbeat, beats := seconds(task["HeartbeatSeconds"])
	_, timedByPath := task["TimeoutSecondsPath"]
	_, beatsByPath := task["HeartbeatSecondsPath"]
	if !timed && !timedByPath && heartbeat < stepTimeout && !beatsByPath {
		timeout, timed = stepTimeout, true
		task["TimeoutSeconds"] = asl.Number(stepTimeout)
	}
	if v.Beats() && !beats && !beatsByPath && timed && timeout > stepHeartbeat {
		task["HeartbeatSeconds"] = asl.Number(stepHeartbeat)
	}
}

// seconds is a number of a definition.
func seconds(value any) (int64, bool) {
	n, ok := value.(json.Number)
	if !ok {
		return 0, false
	}
	whole, err := n.Int64()
	if err != nil { // 60.0, 6e1
		f, err := n.Float64()
		return int64(f), err == nil
	}
	return whole, true
}

// Spoken is a failure's text for people: of a function's error, what it said. What AWS Lambda says when it could not run the function names the account
// and its resources, and tells a tenant nothing.
func Spoken(code, cause string) string {
	for _, service := range []string{"Lambda.", "Sandbox.", "Runtime."} {
		if strings.HasPrefix(code, service) {
			return "the platform could not run the step"
		}
	}
	var said struct {
		Message *string `json:"errorMessage"`
	}
	if strings.HasPrefix(cause, "{") && json.Unmarshal([]byte(cause), &said) == nil && said.Message != nil {
		return *said.Message
	}
	return cause
}
