//go:build long

package main

import (
	"encoding/json"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pass is a routine that does nothing.
var pass = vars{"StartAt": "Done", "States": vars{"Done": vars{"Type": "Pass", "Result": vars{"done": true}, "End": true}}}

// ask is one that waits for a person.
var ask = vars{"StartAt": "Agree", "States": vars{"Agree": vars{"Type": "Task", "Resource": "platform:wait_for_approval", "Parameters": vars{"prompt": "Shall it?"}, "End": true}}}

// errand is one that does all that there is to do: a turn beside a tool's call, a person's decision, a mail, and another routine, to its end.
func (l *lane) errand() vars {
	one := func(name string, state vars) vars {
		state["End"] = true
		return vars{"StartAt": name, "States": vars{name: state}}
	}
	enter := one("Enter", vars{"Type": "Task", "Resource": "platform:call_tool",
		"Parameters": vars{"agentId": l.agent, "tool": "book__enter", "input": vars{"key.$": "$.key"}},
		"Catch":      []vars{{"ErrorEquals": []string{"ToolFailed"}, "ResultPath": "$.failure", "Next": "Unsure"}}})
	enter["States"].(vars)["Unsure"] = vars{"Type": "Pass", "End": true}
	return vars{"StartAt": "Both", "States": vars{
		"Both": vars{"Type": "Parallel", "ResultPath": "$.both", "Next": "Agree", "Branches": []vars{
			one("Say", vars{"Type": "Task", "Resource": "platform:run_turn", "Parameters": vars{"agentId": l.agent, "prompt.$": "$.prompt"}}), enter}},
		"Agree": vars{"Type": "Task", "Resource": "platform:wait_for_approval", "Parameters": vars{"prompt": "Shall it go out?"}, "ResultPath": "$.agreed", "Next": "Mail"},
		"Mail": vars{"Type": "Task", "Resource": "platform:send_mail", "Parameters": vars{"to": owners[0].email, "subject.$": "$.key", "text": "It is done."},
			"ResultPath": "$.mail", "Next": "More", "Catch": []vars{{"ErrorEquals": []string{"MailUnknown"}, "ResultPath": "$.unsent", "Next": "More"}}},
		"More": vars{"Type": "Task", "Resource": "platform:start_routine", "Parameters": vars{"routine": "Nothing", "input": vars{"key.$": "$.key"}, "wait": true},
			"ResultPath": "$.more", "End": true}}}
}

// errands are a run of it, and what it was started with.
type errands struct {
	ground
	routine, nothing string
	runsBefore       []string // of the other routine
	input            vars
}

func (l *lane) errands(t *testing.T, key string) (e errands) {
	t.Helper()
	var err error
	e.nothing, err = l.makeRoutine(t.Context(), "Nothing", pass)
	require.NoError(t, err)
	e.routine, err = l.makeRoutine(t.Context(), "Errand", l.errand())
	require.NoError(t, err)
	e.runsBefore = l.runs(t, e.nothing)
	e.key = key
	e.spent, _, err = l.money(t.Context())
	require.NoError(t, err)
	e.input = vars{"key": key, "prompt": task(key + " said")}
	return e
}

// run starts the run, or asks for the one that there is.
func (l *lane) run(t *testing.T, e errands) string {
	id, _ := l.startRoutine(t.Context(), e.routine, e.key, e.input)
	return id
}

// sameRun asks for the run once more, and once more.
func (l *lane) sameRun(t *testing.T, e errands) string {
	t.Helper()
	id := l.run(t, e)
	require.NotEmpty(t, id)
	require.Equal(t, id, l.run(t, e))
	return id
}

// errandBegun is a run whose platform dies before a person is asked.
func (l *lane) errandBegun(t *testing.T, c cut) {
	e := l.errands(t, "begun-"+c.key())
	l.kill(t, c.point, c.first(), func() { l.run(t, e) })
	l.restart(t, c.second())
	id := l.sameRun(t, e)
	step := l.asked(t, id)
	_, err := l.decide(t.Context(), id, step, "APPROVED")
	require.NoError(t, err)
	l.errandDone(t, e, id, step, c, cut{})
}

// errandDecided is one whose platform dies when a person has decided, who decides again.
func (l *lane) errandDecided(t *testing.T, c cut) {
	e := l.errands(t, "decided-"+c.key())
	id := l.run(t, e)
	step := l.asked(t, id)
	l.kill(t, c.point, c.first(), func() { _, _ = l.decide(t.Context(), id, step, "APPROVED") })
	l.restart(t, c.second())
	require.Equal(t, id, l.sameRun(t, e))
	status, err := l.decide(t.Context(), id, step, "APPROVED")
	require.NoError(t, err)
	require.Equal(t, "approved", status)
	l.errandDone(t, e, id, step, cut{}, c)
}

// errandDone is what the run must have come to, whatever has happened to it: everything was done once, or is said to be unknown where a death has hidden it.
func (l *lane) errandDone(t *testing.T, e errands, id, step string, entry, mailed cut) {
	t.Helper()
	r := l.runUntil(t, id, routineRun.over)
	require.Nil(t, r.Error)
	require.Equal(t, "succeeded", r.Status)
	require.Equal(t, []string{id}, l.thisRun(t, e, id))
	var out struct {
		Both   [2]json.RawMessage
		Agreed struct{ Decision string }
		Mail   *struct{ MessageID string }
		Unsent *struct{ Error string }
		More   struct {
			RunID, Status string
			Output        struct{ Done bool }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(*r.Output), &out))

	l.madeEntry(t, e.key, out.Both[1], entry)
	l.turnDone(t, e, out.Both[0])
	require.Equal(t, "approved", out.Agreed.Decision)
	require.Empty(t, l.asks(t, id))
	_, err := l.decide(t.Context(), id, step, "DENIED")
	require.Contains(t, refusedBy(t, err), "approved already")

	mails := l.mails(t, e.key)
	if mailed.lost && (!mailed.maybe || out.Unsent != nil) {
		require.NotNil(t, out.Unsent)
		require.Equal(t, "MailUnknown", out.Unsent.Error)
		require.LessOrEqual(t, mails, 1)
	} else {
		require.Nil(t, out.Unsent)
		require.NotEmpty(t, out.Mail.MessageID)
		require.Equal(t, 1, mails)
	}

	require.Equal(t, "succeeded", out.More.Status)
	require.True(t, out.More.Output.Done)
	runs := l.runs(t, e.nothing)
	require.Len(t, runs, len(e.runsBefore)+1)
	require.NotContains(t, e.runsBefore, out.More.RunID)
	require.Contains(t, runs, out.More.RunID)

	seen := map[string]int{}
	for _, s := range r.Steps.Items {
		seen[s.State]++
		require.Equal(t, 1, seen[s.State], s.State)
		require.Equal(t, 1, s.Attempts, s.State)
		require.Contains(t, []string{"succeeded", "caught"}, s.Status, s.State)
	}
	delete(seen, "Unsure")
	require.Len(t, seen, 6)
	l.nothingLeft(t)
}

// thisRun are the runs of the routine that were started since; the key is that of its input.
func (l *lane) thisRun(t *testing.T, e errands, id string) (found []string) {
	t.Helper()
	for _, run := range l.runs(t, e.routine) {
		if run >= id { // they are in the order of their making
			found = append(found, run)
		}
	}
	return found
}

// madeEntry is what came of the tool's call in the run.
func (l *lane) madeEntry(t *testing.T, key string, result json.RawMessage, c cut) {
	t.Helper()
	var branch struct {
		Failure *struct{ Error, Cause string }
	}
	_ = json.Unmarshal(result, &branch) // the tool's result may be anything
	if c.lost && (!c.maybe || branch.Failure != nil) {
		require.NotNil(t, branch.Failure, string(result))
		require.Equal(t, "ToolFailed", branch.Failure.Error)
		require.Contains(t, branch.Failure.Cause, "interrupted, outcome unknown")
		require.LessOrEqual(t, l.times()[key], 1)
		return
	}
	require.Nil(t, branch.Failure, string(result))
	require.Equal(t, 1, l.times()[key])
}

// turnDone is the run's turn: it is one, in a thread of its own, with one answer, which the run has.
func (l *lane) turnDone(t *testing.T, e errands, result json.RawMessage) {
	t.Helper()
	var said struct{ ThreadID, TurnID, Status, Reply string }
	require.NoError(t, json.Unmarshal(result, &said))
	require.Equal(t, "succeeded", said.Status)
	h, err := l.read(t.Context(), said.ThreadID)
	require.NoError(t, err)
	l.whole(t, h, "open", 1, []string{e.input["prompt"].(string)}, said.TurnID)
	require.Equal(t, h.replies(said.TurnID)[0].Body, said.Reply)
	l.paid(t, e.ground, h)
	one := h.turn(said.TurnID)
	require.LessOrEqual(t, one.Attempts, 3)
	l.entry(t, h, said.TurnID, "book__enter", e.key+" said", one.ToolOutcomes[0].Status != "ok")
}

// mails is how many of that subject were sent.
func (l *lane) mails(t *testing.T, subject string) (n int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(l.data(), "outbox", "*.eml"))
	require.NoError(t, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		m, err := mail.ReadMessage(strings.NewReader(string(raw)))
		require.NoError(t, err)
		if m.Header.Get("Subject") == subject {
			n++
		}
	}
	return n
}

// routineMade dies when the engine has a new routine's machine, twice: what was written is the routine, once, and it runs.
func (l *lane) routineMade(t *testing.T, c cut) {
	name := "made-" + c.key()
	made := func() string {
		id, _ := l.makeRoutine(t.Context(), name, pass)
		return id
	}
	l.kill(t, c.point, c.first(), func() { made() })
	l.restartBy(t, c.second(), func() { made() })
	id := made()
	require.NotEmpty(t, id)
	require.Equal(t, id, made())
	require.Equal(t, []string{"ready"}, l.versions(t, id))
	run, err := l.startRoutine(t.Context(), id, name, vars{})
	require.NoError(t, err)
	require.Equal(t, "succeeded", l.runUntil(t, run, routineRun.over).Status)
	l.nothingLeft(t)
}

// routineStopped dies when a run has been stopped, which waits for a person: it is stopped, and nobody decides any more.
func (l *lane) routineStopped(t *testing.T, c cut) {
	key := "stopped-" + c.key()
	id, err := l.makeRoutine(t.Context(), key, ask)
	require.NoError(t, err)
	run, err := l.startRoutine(t.Context(), id, key, vars{})
	require.NoError(t, err)
	step := l.asked(t, run)
	stop := func() (r routineRun, err error) {
		var answer struct{ StopRoutineRun routineRun }
		err = l.query(t.Context(), `mutation ($id: ID!) { stopRoutineRun(id: $id, reason: "It is late.") { id status error cause } }`, vars{"id": run}, &answer)
		return answer.StopRoutineRun, err
	}
	l.kill(t, c.point, c.first(), func() { _, _ = stop() })
	l.restart(t, c.second())
	for range 2 {
		r, err := stop()
		require.NoError(t, err)
		require.Equal(t, "aborted", r.Status)
		require.Equal(t, "Stopped", *r.Error)
		require.Equal(t, "It is late.", *r.Cause)
	}
	require.Equal(t, "aborted", l.runUntil(t, run, routineRun.over).Status)
	require.Empty(t, l.asks(t, run))
	_, err = l.decide(t.Context(), run, step, "APPROVED")
	require.Contains(t, refusedBy(t, err), "does not wait")
	l.nothingLeft(t)
}

// routineRetired dies when the machine of a version is deleted that another one has replaced: it is gone, and the newer one runs.
func (l *lane) routineRetired(t *testing.T, c cut) {
	key := "retired-" + c.key()
	id, err := l.makeRoutine(t.Context(), key, ask)
	require.NoError(t, err)
	newer, err := json.Marshal(pass)
	require.NoError(t, err)
	require.NoError(t, l.order(c.point, c.first())) // the sweep may come at any time
	_ = l.query(t.Context(), `mutation ($id: ID!, $definition: AWSJSON) { updateRoutine(id: $id, input: {definition: $definition}) { id } }`,
		vars{"id": id, "definition": string(newer)}, &struct{}{})
	l.machine.kill()
	l.dies(t, c.point, func() {})
	l.restart(t, c.second())
	soon(t, "the version's machine is gone", func() bool { return slices.Equal(l.versions(t, id), []string{"ready", "gone"}) })
	run, err := l.startRoutine(t.Context(), id, key, vars{})
	require.NoError(t, err)
	require.Equal(t, "succeeded", l.runUntil(t, run, routineRun.over).Status)
	l.nothingLeft(t)
}
