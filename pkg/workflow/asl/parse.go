package asl

import (
	"fmt"
	"unicode/utf8"

	"github.com/agentplatform/agentplatform/pkg/workflow"
)

const (
	MaxNesting   = 20 // machines in each other: a definition is 1, a branch of its Parallel 2. And rules of a Choice in each other
	MaxStateName = 80 // characters of a state's name
)

// Parse reads and checks a definition. What is wrong with it is a *workflow.DefinitionError with every problem that was found (a hundred at most), each
// with a Code, a Message and a JSON pointer; a definition that is too large is workflow.ErrTooLarge.
func Parse(definition string, d Dialect) (*Machine, error) {
	if err := workflow.CheckDefinition(definition); err != nil {
		return nil, err
	}
	r := &reader{dialect: d, names: map[string]bool{}}
	value, ok := r.json(definition)
	var m *Machine
	if ok {
		m = r.definition(value)
	}
	if len(r.problems) > 0 {
		return nil, &workflow.DefinitionError{Problems: r.problems}
	}
	return m, nil
}

func (r *reader) definition(value any) *Machine {
	o := r.object(value, "")
	o.only("a definition", "Comment", "StartAt", "States", "TimeoutSeconds", "Version", "QueryLanguage")
	if o.has("Version") && o.fields["Version"] != "1.0" {
		o.wrong("Version", `The value should be "1.0"`)
	}
	m := o.machine(1)
	m.Timeout = int(o.integer("TimeoutSeconds", 1, maxSeconds, 0))
	return m
}

// machine is what a definition, a branch and a processor have in common.
func (o object) machine(depth int) *Machine {
	m := &Machine{Comment: o.text("Comment", false), StartAt: o.text("StartAt", true), States: map[string]*State{}}
	if o.query(); o.fields == nil {
		return m
	}
	if depth > MaxNesting {
		o.problem(schemaFailed, o.at, "Branches and processors are nested deeper than %d", MaxNesting)
		return m
	}
	if !o.has("States") {
		o.problem(schemaFailed, o.at, "The field 'States' is missing")
		return m
	}
	states := o.reader.object(o.fields["States"], o.place("States"))
	if states.fields != nil && len(states.fields) == 0 {
		o.wrong("States", "There is no state")
	}
	for _, name := range names(states.fields) {
		at := states.place(name)
		switch {
		case name == "" || utf8.RuneCountInString(name) > MaxStateName:
			o.problem(schemaFailed, at, "A state's name has 1 to %d characters", MaxStateName)
		case o.names[name]:
			o.problem(schemaFailed, at, "There is another state '%s': names are unique in the whole definition", name)
		}
		o.names[name] = true
		m.States[name] = o.state(name, o.object(states.fields[name], at), depth)
	}
	if len(states.fields) > 0 {
		o.transitions(m)
	}
	return m
}

// branches are a Parallel's.
func (o object) branches(depth int) (machines []*Machine) {
	for i, value := range o.list("Branches") {
		branch := o.object(value, fmt.Sprintf("%s/%d", o.place("Branches"), i))
		branch.only("a branch", "Comment", "StartAt", "States", "QueryLanguage")
		machines = append(machines, branch.machine(depth+1))
	}
	return machines
}

// processor is a Map's: ItemProcessor, or the older Iterator.
func (o object) processor(depth int) *Machine {
	o.oneOf("ItemProcessor", "Iterator", true)
	name := "ItemProcessor"
	if !o.has(name) {
		name = "Iterator"
	}
	if !o.has(name) {
		return nil
	}
	inner := o.object(o.fields[name], o.place(name))
	inner.only("a processor", "Comment", "StartAt", "States", "QueryLanguage", "ProcessorConfig")
	if inner.has("ProcessorConfig") {
		config := o.object(inner.fields["ProcessorConfig"], inner.place("ProcessorConfig"))
		if config.has("Mode") && config.fields["Mode"] != "INLINE" {
			config.wrong("Mode", "%s", noDistribution)
		}
		config.only("an inline processor", "Mode")
	}
	return inner.machine(depth + 1)
}

// transitions says what is wrong with the ways between a machine's states: each leads somewhere, each state is on one, and has one to an end.
func (o object) transitions(m *Machine) {
	if m.StartAt == "" {
		return
	}
	if m.States[m.StartAt] == nil {
		o.problem(missingTarget, o.place("StartAt"), "There is no state '%s'", clip(m.StartAt))
		return
	}
	from := map[string][]string{} // who leads to a state
	var ends []string
	complete, known := true, true // where each leads is there, and is told at all: if not, what follows from that is no problem of its own
	for name, s := range m.States {
		ways := s.ways()
		for _, w := range ways {
			if m.States[w.next] == nil {
				complete = false
			}
			from[w.next] = append(from[w.next], name)
		}
		if s.End {
			ends = append(ends, name)
		} else if len(ways) == 0 {
			known = false
		}
	}
	reached := closure([]string{m.StartAt}, func(name string) (next []string) {
		for _, w := range m.States[name].ways() {
			if m.States[w.next] != nil {
				next = append(next, w.next)
			}
		}
		return next
	})
	ending := closure(ends, func(name string) []string { return from[name] })
	for _, name := range sorted(m.States) {
		s := m.States[name]
		for _, w := range s.ways() {
			if m.States[w.next] == nil {
				o.problem(missingTarget, w.at, "There is no state '%s'", clip(w.next))
			}
		}
		switch {
		case !known:
		case !reached[name]:
			o.problem(missingTarget, s.Location, "State '%s' is not reachable", name)
		case !ending[name] && complete:
			o.problem(missingTarget, s.Location, "No way leads from state '%s' to an end", name)
		}
	}
}

// closure is what there is from some names on.
func closure(names []string, next func(string) []string) map[string]bool {
	seen := map[string]bool{}
	for len(names) > 0 {
		name := names[len(names)-1]
		names = names[:len(names)-1]
		if !seen[name] {
			seen[name] = true
			names = append(names, next(name)...)
		}
	}
	return seen
}

// way is where a state may go on, and where the definition says so.
type way struct{ next, at string }

func (s *State) ways() (ways []way) {
	if s.Next != "" {
		ways = append(ways, way{s.Next, s.Location + "/Next"})
	}
	for i, c := range s.choices {
		if c.next != "" {
			ways = append(ways, way{c.next, fmt.Sprintf("%s/Choices/%d/Next", s.Location, i)})
		}
	}
	if s.fallback != "" {
		ways = append(ways, way{s.fallback, s.Location + "/Default"})
	}
	for i, c := range s.catchers {
		if c.next != "" {
			ways = append(ways, way{c.next, fmt.Sprintf("%s/Catch/%d/Next", s.Location, i)})
		}
	}
	return ways
}
