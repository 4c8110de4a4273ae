package routine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// Verb is what the platform does for a task of a routine: Resource "platform:<verb>".
type Verb string

const (
	RunTurn         Verb = "run_turn"          // an agent answers a prompt
	CallTool        Verb = "call_tool"         // a tool is called as an agent may
	WaitForApproval Verb = "wait_for_approval" // a person says yes
	SendMail        Verb = "send_mail"
	StartRoutine    Verb = "start_routine" // a run of another routine, to its end or not
)

// Verbs are all of them.
var Verbs = []Verb{RunTurn, CallTool, WaitForApproval, SendMail, StartRoutine}

// Scheme is what comes before a verb in a Resource.
const Scheme = "platform:"

// ParseResource is the verb of a Resource; not ok: it is none of the platform's.
func ParseResource(resource string) (v Verb, ok bool) {
	name, ok := strings.CutPrefix(resource, Scheme)
	return Verb(name), ok && slices.Contains(Verbs, Verb(name))
}

// Beats reports whether a task of the verb fails when nothing was heard of it for long, so that the platform tells the engine each minute that it works on
// it: a person may think for days.
func (v Verb) Beats() bool { return v != WaitForApproval }

// kind is what a parameter's value must be.
type kind int

const (
	anything  kind = iota
	words          // text
	flag           // a boolean
	object         // a JSON object
	identity       // a UUID
	addresses      // of e-mail: a text or a list of them
	people         // a list of users' UUIDs
)

// of says what a lookup of a literal value is for; 0: none.
type of int

const (
	ofNothing of = iota
	ofAgent
	ofRoutine
	ofRoutineName
	ofUsers
)

// parameter is one thing that a verb is told.
type parameter struct {
	name     string
	kind     kind
	of       of
	required bool
	max      int // bytes of a text; entries of a list
}

// parameters are what each verb is told. docs/routines.md shows the same.
var parameters = map[Verb][]parameter{
	RunTurn: {{name: "agentId", kind: identity, of: ofAgent, required: true}, {name: "prompt", kind: words, required: true, max: 128 << 10},
		{name: "threadId", kind: words, max: 40}, {name: "title", kind: words, max: 500}},
	CallTool: {{name: "agentId", kind: identity, of: ofAgent, required: true}, {name: "tool", kind: words, required: true, max: 200}, {name: "input", kind: object}},
	WaitForApproval: {{name: "prompt", kind: words, required: true, max: 4 << 10}, {name: "approvers", kind: people, of: ofUsers, max: 50},
		{name: "details", kind: anything}},
	SendMail: {{name: "to", kind: addresses, required: true, max: 10}, {name: "subject", kind: words, required: true, max: 200},
		{name: "text", kind: words, required: true, max: 50_000}},
	StartRoutine: {{name: "routineId", kind: identity, of: ofRoutine}, {name: "routine", kind: words, of: ofRoutineName, max: maxName}, {name: "input", kind: anything},
		{name: "wait", kind: flag}},
}

// CheckInput says why a verb cannot be told that: a ValidationError. It is what a definition's literal values are checked by, for what a run makes of it.
func CheckInput(v Verb, input json.RawMessage) error {
	var given map[string]any
	if json.Unmarshal(input, &given) != nil || given == nil {
		return fault.Invalid("%s%s takes a JSON object", Scheme, v)
	}
	var problems []string
	for _, f := range checkParameters(v, given, false) {
		if f.problem != "" {
			problems = append(problems, strings.TrimPrefix(short(strings.TrimPrefix(f.place, "/"))+": "+f.problem, ": "))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	if more := len(problems) - maxProblems; more > 0 {
		problems = append(problems[:maxProblems], fmt.Sprintf("and %d more", more))
	}
	return fault.Invalid("%s%s: %s", Scheme, v, strings.Join(problems, "; "))
}

// short is a place as a message has it: a name that a run has made may be as long as all it is given.
func short(place string) string {
	const most = 100
	if len(place) <= most {
		return place
	}
	return strings.ToValidUTF8(place[:most], "") + "…"
}
