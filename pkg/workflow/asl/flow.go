package asl

import (
	"maps"
	"slices"
)

// flow is what a state makes of its data: a nil is a field that the definition does not have, and that does nothing.
type flow struct {
	input, output selection
	parameters    *template // of a Map: ItemSelector, or the older Parameters
	rawParameters any
	selector      *template // ResultSelector
	place         *place    // ResultPath
	result        *constant // Pass: Result
	choices       []choice
	fallback      string // Choice: Default
	wait          *wait
	items         *path // Map: ItemsPath
	concurrency   *path // Map: MaxConcurrencyPath
	timeout, beat seconds
	failure       [2]text // Fail: Error and Cause
	retriers      []retrier
	catchers      []catcher
}

// constant is a value of the definition, which may be null.
type constant struct{ value any }

// selection is InputPath or OutputPath.
type selection struct {
	path *path // nil: all
	none bool  // null: an empty object
}

func (s selection) from(e *evaluation) any {
	if s.none {
		return map[string]any{}
	}
	value, has := e.selected(s.path)
	if !has {
		e.fail(ErrorRuntime, "Invalid path '%s' : No results for path", s.path.text)
	}
	return value
}

// Parameters is the template as the definition has it, nil if it has none: for a Dialect. Of a Map it is ItemSelector, or the older Parameters.
func (s *State) Parameters() any { return s.rawParameters }

// Input is what the state works on: its raw input through InputPath, then Parameters. It is the task's input, each branch's, and what Result, Choose,
// Until, Items, Item, Concurrency and Fails take. A Map's ItemSelector (or its older Parameters) is Item's.
func (s *State) Input(raw any, c Context) (any, *Failure) {
	e := evaluate(raw, c)
	value := s.input.from(e)
	if s.parameters != nil && s.Type != Map && e.failed == nil {
		e.data = value
		value = e.filled(s.parameters)
		if e.failed == nil {
			e.failed = fits("The input of the state '"+s.Name+"'", value)
		}
	}
	if e.failed != nil {
		return nil, e.failed
	}
	return value, nil
}

// Output is what the next state gets: result through ResultSelector, put into the raw input by ResultPath, then through OutputPath. The result is a
// task's, the list of branches' or items' outputs, Result's of a Pass, and Input's of the states that have none (Choice, Wait, Succeed).
func (s *State) Output(raw, result any, c Context) (any, *Failure) {
	e := evaluate(result, c)
	if s.selector != nil {
		result = e.filled(s.selector)
	}
	if e.failed == nil {
		result, e.failed = s.place.put(raw, result)
	}
	if e.failed == nil {
		e.data = result
		result = s.output.from(e)
	}
	if e.failed == nil {
		e.failed = fits("The output of the state '"+s.Name+"'", result)
	}
	if e.failed != nil {
		return nil, e.failed
	}
	return result, nil
}

// Result is a Pass state's: its Result, else its input.
func (s *State) Result(input any) any {
	if s.result != nil {
		return s.result.value
	}
	return input
}

// place is ResultPath: where in the raw input a result goes. nil is in its stead.
type place struct {
	path *path
	none bool // null: nowhere
}

func (p *place) put(raw, result any) (any, *Failure) {
	switch {
	case p == nil:
		return result, nil
	case p.none:
		return raw, nil
	}
	whole, ok := put(raw, p.path.steps, result)
	if !ok {
		return nil, failure(ErrorResultPath, "Unable to apply ReferencePath %s to the input", p.path.text)
	}
	return whole, nil
}

// put is value with result at the end of steps. Objects on the way are made where there is nothing; where there is something else, and where an array
// has no such index, it is not ok. What is there already is copied, not changed.
func put(value any, steps []step, result any) (any, bool) {
	if len(steps) == 0 {
		return result, true
	}
	if s := steps[0]; s.kind == indexed {
		list, is := value.([]any)
		if !is || s.indices[0] >= len(list) {
			return nil, false
		}
		inner, ok := put(list[s.indices[0]], steps[1:], result)
		list = slices.Clone(list)
		list[s.indices[0]] = inner
		return list, ok
	}
	object, is := value.(map[string]any)
	if !is {
		return nil, false
	}
	name := steps[0].name
	inner, has := object[name]
	if !has && len(steps) > 1 {
		inner = map[string]any{}
	}
	inner, ok := put(inner, steps[1:], result)
	if object = maps.Clone(object); object == nil {
		object = map[string]any{}
	}
	object[name] = inner
	return object, ok
}
