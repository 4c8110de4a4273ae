package asl

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/workflow"
)

func sorted(states map[string]*State) []string { return slices.Sorted(maps.Keys(states)) }

// Fields that several types have.
var (
	always  = []string{"Type", "Comment", "QueryLanguage"}
	paths   = []string{"InputPath", "OutputPath"}
	onward  = []string{"Next", "End"}
	results = []string{"Parameters", "ResultPath"}
	errs    = []string{"ResultSelector", "Retry", "Catch"}
)

// fieldsOf are the fields of a type.
var fieldsOf = map[Type][]string{
	Pass:     slices.Concat(always, paths, onward, results, []string{"Result"}),
	Task:     slices.Concat(always, paths, onward, results, errs, []string{"Resource", "TimeoutSeconds", "TimeoutSecondsPath", "HeartbeatSeconds", "HeartbeatSecondsPath"}),
	Choice:   slices.Concat(always, paths, []string{"Choices", "Default"}),
	Wait:     slices.Concat(always, paths, onward, []string{"Seconds", "SecondsPath", "Timestamp", "TimestampPath"}),
	Succeed:  slices.Concat(always, paths),
	Fail:     slices.Concat(always, []string{"Error", "ErrorPath", "Cause", "CausePath"}),
	Parallel: slices.Concat(always, paths, onward, results, errs, []string{"Branches"}),
	Map: slices.Concat(always, paths, onward, results, errs, []string{"ItemsPath", "ItemSelector", "ItemProcessor", "Iterator", "MaxConcurrency",
		"MaxConcurrencyPath"}),
}

// state reads one.
func (r *reader) state(name string, o object, depth int) *State {
	before := len(r.problems)
	s := &State{Name: name, Location: o.at, Comment: o.text("Comment", false), Type: Type(o.text("Type", true))}
	if o.fields == nil {
		return s
	}
	o.query()
	fields := fieldsOf[s.Type]
	if fields == nil {
		if s.Type != "" {
			o.wrong("Type", "There is no type '%s'", clip(string(s.Type)))
		}
		return s
	}
	o.only("a "+string(s.Type)+" state", fields...)
	o.flow(s)
	switch s.Type {
	case Pass:
		if value, has := o.fields["Result"]; has {
			s.result = &constant{value}
		}
	case Task:
		o.task(s)
	case Choice:
		o.choose(s)
	case Wait:
		s.wait = o.waiting()
	case Fail:
		s.failure = [2]text{o.failureText("Error"), o.failureText("Cause")}
	case Parallel:
		s.Branches = o.branches(depth)
	case Map:
		o.mapping(s, depth)
	}
	if s.Type == Task && len(r.problems) == before && before < maxProblems && r.dialect.Resource != nil {
		o.resource(s)
	}
	return s
}

// flow reads what types have in common.
func (o object) flow(s *State) {
	s.input, s.output = o.selection("InputPath"), o.selection("OutputPath")
	has := func(field string) bool { return slices.Contains(fieldsOf[s.Type], field) }
	if has("ResultPath") {
		s.place = o.resultPath()
	}
	if value, there := o.fields["Parameters"]; there && has("Parameters") {
		s.rawParameters, s.parameters = value, o.payload("Parameters")
	}
	if o.has("ResultSelector") && has("ResultSelector") {
		s.selector = o.payload("ResultSelector")
	}
	if has("Retry") {
		o.retry(s)
		o.catch(s)
	}
	switch {
	case !has("Next"):
		s.End = s.Type == Succeed || s.Type == Fail
	case o.has("End") && o.fields["End"] != true && o.fields["End"] != false:
		o.wrong("End", "The value should be true")
	case o.fields["End"] == true:
		s.End = true
		o.oneOf("Next", "End", true)
	case !o.has("Next"):
		o.problem(schemaFailed, o.at, "The field 'Next' or 'End' is missing")
	default:
		s.Next = o.text("Next", true)
	}
}

// payload is a field that is a payload template, which is an object.
func (o object) payload(name string) *template {
	if _, is := o.fields[name].(map[string]any); !is {
		o.wrong(name, "The value should be an object, but is %s", kindOf(o.fields[name]))
	}
	return o.template(o.fields[name], o.place(name))
}

func (o object) selection(name string) selection {
	if value, has := o.fields[name]; has && value == nil {
		return selection{none: true}
	}
	return selection{path: o.path(name, parsePath)}
}

// resultPath is nil for $, which needs nothing done.
func (o object) resultPath() *place {
	if value, has := o.fields["ResultPath"]; has && value == nil {
		return &place{none: true}
	}
	p := o.path("ResultPath", parseReference)
	if p != nil && p.context {
		o.wrong("ResultPath", "A result cannot be put into the context object")
	}
	if p == nil || len(p.steps) == 0 {
		return nil
	}
	return &place{path: p}
}

func (o object) task(s *State) {
	s.Resource = o.text("Resource", true)
	s.timeout, s.beat = o.seconds("TimeoutSeconds", 1), o.seconds("HeartbeatSeconds", 1)
	if s.timeout.value > 0 && s.beat.value >= s.timeout.value {
		o.wrong("HeartbeatSeconds", "The value should be less than TimeoutSeconds")
	}
}

// seconds are a field, or the one whose name has Path behind it.
func (o object) seconds(name string, least int64) seconds {
	o.oneOf(name, name+"Path", false)
	return seconds{field: name + "Path", value: o.integer(name, least, maxSeconds, 0), path: o.path(name+"Path", parseReference)}
}

func (o object) mapping(s *State, depth int) {
	s.items = o.path("ItemsPath", parsePath)
	o.oneOf("ItemSelector", "Parameters", false)
	if o.has("ItemSelector") {
		s.rawParameters, s.parameters = o.fields["ItemSelector"], o.payload("ItemSelector")
	}
	o.oneOf("MaxConcurrency", "MaxConcurrencyPath", false)
	s.MaxConcurrency = int(o.integer("MaxConcurrency", 0, maxSeconds, 0))
	s.concurrency = o.path("MaxConcurrencyPath", parseReference)
	s.Processor = o.processor(depth)
}

// resource asks the dialect about a Task that is in order.
func (o object) resource(s *State) {
	err := o.dialect.Resource(s.Resource, s)
	if err == nil {
		return
	}
	var several *workflow.DefinitionError
	if !errors.As(err, &several) {
		o.wrong("Resource", "%s", err)
		return
	}
	for _, p := range several.Problems {
		if p.Code == "" {
			p.Code = schemaFailed
		}
		if !strings.HasPrefix(p.Location, o.at+"/") {
			p.Location = o.at + p.Location
		}
		o.problem(p.Code, p.Location, "%s", p.Message)
	}
}
