//go:build long

package workflow_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// random makes machines that end, and do the same however the work is spread: what fails is alone at that moment.
type random struct {
	*rand.Rand
	names int
}

func (r *random) name(kind string) string {
	r.names++
	return fmt.Sprintf("%s%d", kind, r.names)
}

// likely is true so many times in ten.
func (r *random) likely(times int) bool { return r.IntN(10) < times }

func (r *random) one(of ...string) string { return of[r.IntN(len(of))] }

// machine takes and makes an object with a number n, a text s and a list of numbers l.
func (r *random) machine(depth int, mayFail bool) object {
	names := make([]string, 1+r.IntN(4))
	for i := range names {
		names[i] = r.name("s")
	}
	states := object{}
	for i, name := range names {
		last := i == len(names)-1
		state := r.state(depth, mayFail)
		next := ""
		if !last {
			next = names[i+1]
		}
		switch {
		case state["Type"] == "Choice" && last:
			state = object{"Type": "Succeed"}
		case state["Type"] == "Choice":
			state["Default"] = next
			to := names[i+1+r.IntN(len(names)-i-1)]
			if mayFail && r.likely(3) {
				to = r.name("f")
				states[to] = object{"Type": "Fail", "Error": r.one("Odd", "Even"), "CausePath": "States.Format('{} of {}', $.n, $$.State.Name)"}
			}
			state["Choices"].([]object)[0]["Next"] = to
		case last:
			state["End"] = true
		default:
			state["Next"] = next
		}
		if state["Catch"] != nil {
			to := r.name("c")
			states[to] = object{"Type": "Pass", "Parameters": object{"n.$": "$.n", "s.$": "$.e.Error", "l.$": "$.l"}, "End": true}
			state["Catch"] = []object{{"ErrorEquals": []string{r.one("Odd", "Even")}, "ResultPath": "$.e", "Next": to}, {"ErrorEquals": []string{"States.ALL"}, "ResultPath": "$.e", "Next": to}}
		}
		states[name] = state
	}
	return object{"StartAt": names[0], "States": states}
}

func (r *random) state(depth int, mayFail bool) object {
	kinds := []string{"Pass", "Result", "Choice", "Choice", "Wait", "Task", "Invoke", "Fail", "Flaky", "Ask", "Ask"}
	if depth > 0 {
		kinds = append(kinds, "Parallel", "Parallel", "Map", "Map")
	}
	made := object{"n.$": fmt.Sprintf("States.MathAdd($.n, %d)", r.IntN(5)-2), "s.$": fmt.Sprintf("States.Format('{}.%d', $.s)", r.IntN(9)), "l.$": r.one("$.l", "$.l", "States.Array($.n, 1)", "$.l[1:]")}
	switch kind := kinds[r.IntN(len(kinds))]; kind {
	case "Pass":
		return object{"Type": "Pass", "Parameters": made}
	case "Result":
		return object{"Type": "Pass", "Result": object{"x": r.IntN(9)}, "ResultPath": r.one("$.x", "$.x.y", "$.s2")}
	case "Choice":
		return object{"Type": "Choice", "Choices": []object{{"Variable": "$.n", r.one("NumericLessThan", "NumericGreaterThanEquals"): r.IntN(6)}}}
	case "Wait":
		return object{"Type": "Wait", "Seconds": 0}
	case "Task":
		return object{"Type": "Task", "Resource": arn + "echo", "Parameters": made, "ResultPath": r.one("$", "$.t")}
	case "Invoke":
		return object{"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Parameters": object{"FunctionName": arn + "echo", "Payload": made}, "ResultSelector": object{"got.$": "$.Payload.n"}, "ResultPath": "$.i"}
	case "Fail":
		s := object{"Type": "Task", "Resource": arn + "fail", "Parameters": object{"type": r.one("Odd", "Even", "Other"), "message.$": "$.s"}}
		return r.caught(s, mayFail)
	case "Flaky":
		s := object{"Type": "Task", "Resource": arn + "flaky", "Parameters": object{"key.$": "States.UUID()", "times": r.IntN(2), "type": "Busy"}, "ResultPath": "$.k"}
		return r.caught(s, mayFail)
	case "Ask":
		payload := object{"token.$": "$$.Task.Token", "succeed": object{"n.$": "$.n"}}
		if r.likely(3) {
			payload["fail"] = object{"error": r.one("Odd", "Even"), "cause.$": "$.s"}
		}
		s := object{"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken", "Parameters": object{"FunctionName": arn + "ask", "Payload": payload}, "ResultPath": "$.a"}
		if r.likely(5) {
			s["HeartbeatSeconds"] = 60
		}
		return r.caught(s, mayFail)
	case "Parallel":
		branches := make([]object, 1+r.IntN(3))
		failing := mayFail && len(branches) == 1
		for i := range branches {
			branches[i] = r.machine(depth-1, failing)
		}
		s := object{"Type": "Parallel", "Branches": branches, "ResultPath": "$." + r.name("p")}
		return r.caught(s, !failing || r.likely(3))
	default: // a Map
		most := r.IntN(4)
		failing := mayFail && most == 1
		s := object{"Type": "Map", "ItemsPath": "$.l", "MaxConcurrency": most, "ItemProcessor": r.machine(depth-1, failing), "ResultPath": "$." + r.name("m"),
			"ItemSelector": object{"n.$": "$$.Map.Item.Value", "s.$": "States.Format('{}/{}', $.s, $$.Map.Item.Index)", "l": []int{r.IntN(5), r.IntN(5)}}}
		return r.caught(s, !failing || r.likely(3))
	}
}

// caught is a state that may fail, with a Catch unless it need not be.
func (r *random) caught(s object, mayFail bool) object {
	if !mayFail || r.likely(5) {
		s["Catch"] = true
	}
	return s
}

// Both engines run machines that nobody has thought of alike.
func TestRandom(t *testing.T) {
	const machines = 150
	seed := rand.Uint64()
	var examples []*example
	for i := range machines {
		r := &random{Rand: rand.New(rand.NewPCG(seed, uint64(i)))}
		x := &example{path: fmt.Sprintf("seed %d, machine %d", seed, i), machine: fmt.Sprintf("random-%d", i), definition: string(text(t, r.machine(2, true)))}
		for range 2 {
			x.Runs = append(x.Runs, run{Input: text(t, object{"n": r.IntN(7) - 1, "s": "a", "l": []int{r.IntN(5), r.IntN(5), r.IntN(5)}[:1+r.IntN(3)]})})
		}
		examples = append(examples, x)
	}
	moto, local := map[string]ended{}, map[string]ended{}
	var both sync.WaitGroup
	for name, all := range map[string]map[string]ended{"moto": moto, "local": local} {
		f := newFunctions(t)
		f.engine = engines[name](t, f.invoke)
		both.Go(func() { runAll(t.Context(), f.engine, examples, name == "moto", all) })
	}
	both.Wait()
	statuses := map[string]int{}
	for _, x := range examples {
		for i := range x.Runs {
			a, b := moto[keyOf(x, i)], local[keyOf(x, i)]
			told := func(e ended) string {
				require.NoError(t, e.err, "%s\n%s", x.path, x.definition)
				output := "none"
				if e.Output != nil {
					output = normal(t, e.Output)
				}
				return strings.Join([]string{string(e.Status), e.Error, normal(t, text(t, e.Cause)), output, e.history(t, false)}, "\n")
			}
			require.Equal(t, told(a), told(b), "%s\n%s\n%s", x.path, x.definition, x.Runs[i].Input)
			statuses[string(a.Status)]++
		}
	}
	t.Log(statuses)
}
