package asl

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// choose reads a Choice state's rules.
func (o object) choose(s *State) {
	for i, value := range o.list("Choices") {
		inner := o.object(value, fmt.Sprintf("%s/%d", o.place("Choices"), i))
		s.choices = append(s.choices, choice{inner.rule(1), inner.text("Next", true)})
	}
	if o.has("Default") {
		s.fallback = o.text("Default", true)
	}
}

// rule reads one; only the outermost have a Next.
func (o object) rule(depth int) (r rule) {
	if o.fields == nil {
		return r
	}
	if depth > MaxNesting {
		o.problem(schemaFailed, o.at, "Rules are nested deeper than %d", MaxNesting)
		return r
	}
	if o.has("Next") && depth > 1 {
		o.wrong("Next", "Only the outermost rule has a Next")
	}
	allowed := []string{"Next", "Comment", "Variable"}
	for _, name := range names(o.fields) {
		known := name == "And" || name == "Or" || name == "Not" || operators[strings.TrimSuffix(name, "Path")] != nil
		if known && r.op != "" {
			o.wrong(name, "There is another comparison: '%s'", r.op)
		}
		if known {
			r.op = name
			allowed = append(allowed, name)
		}
	}
	o.only("a rule", allowed...)
	o.text("Comment", false)
	switch r.op {
	case "":
		o.problem(schemaFailed, o.at, "The comparison is missing")
	case "And", "Or":
		for i, value := range o.list(r.op) {
			inner := o.object(value, fmt.Sprintf("%s/%d", o.place(r.op), i))
			r.rules = append(r.rules, inner.rule(depth+1))
		}
	case "Not":
		r.rules = []rule{o.object(o.fields["Not"], o.place("Not")).rule(depth + 1)}
	default:
		o.comparison(&r)
		return r
	}
	if r.op != "" && o.has("Variable") {
		o.wrong("Variable", "'%s' compares no variable", r.op)
	}
	return r
}

func (o object) comparison(r *rule) {
	if r.variable = o.path("Variable", parsePath); !o.has("Variable") {
		o.problem(schemaFailed, o.at, "The field 'Variable' is missing")
	}
	name, isPath := strings.CutSuffix(r.op, "Path")
	r.operator = operators[name]
	if isPath {
		if r.operator.is != nil || name == "StringMatches" {
			o.wrong(r.op, "There is no '%s'", r.op)
		}
		r.wantPath = o.path(r.op, parsePath)
		return
	}
	r.want = o.fields[r.op]
	is, wanted := false, "true or false"
	if r.operator.is != nil {
		_, is = r.want.(bool)
	} else {
		_, is = r.operator.what(r.want)
		switch {
		case strings.HasPrefix(name, "String"):
			wanted = "a string"
		case strings.HasPrefix(name, "Numeric"):
			wanted = "a number"
		case strings.HasPrefix(name, "Timestamp"):
			wanted = "a time, such as 2016-03-14T01:59:00Z"
		}
	}
	if !is {
		o.wrong(r.op, "The value should be %s", wanted)
	} else if name == "StringMatches" {
		r.pattern = wildcard(r.want.(string))
	}
}

// waiting reads what a Wait waits for: one of four fields.
func (o object) waiting() *wait {
	var first string
	for _, name := range []string{"Seconds", "SecondsPath", "Timestamp", "TimestampPath"} {
		switch {
		case !o.has(name):
		case first == "":
			first = name
		default:
			o.wrong(name, "There are both '%s' and '%s'", first, name)
		}
	}
	switch first {
	case "":
		o.problem(schemaFailed, o.at, "The field 'Seconds', 'SecondsPath', 'Timestamp' or 'TimestampPath' is missing")
	case "Seconds", "SecondsPath":
		return &wait{seconds: &seconds{"SecondsPath", o.integer("Seconds", 0, maxSeconds, 0), o.path("SecondsPath", parseReference)}}
	case "TimestampPath":
		return &wait{path: o.path(first, parseReference)}
	case "Timestamp":
		t, is := timestamp(o.fields[first])
		if !is {
			o.wrong(first, "The value should be a time, such as 2016-03-14T01:59:00Z")
			break
		}
		return &wait{at: t.(time.Time)}
	}
	return nil
}

// returnsText are the intrinsic functions that ErrorPath and CausePath may have: those that can return a string.
var returnsText = map[string]bool{
	"States.Format": true, "States.JsonToString": true, "States.ArrayGetItem": true, "States.Base64Encode": true, "States.Base64Decode": true,
	"States.Hash": true, "States.UUID": true,
}

// failureText is Error or Cause, or the field with Path behind it.
func (o object) failureText(name string) text {
	t := text{field: name + "Path", value: o.text(name, false)}
	o.oneOf(name, t.field, false)
	if source := o.text(t.field, o.has(t.field)); isCall(source) {
		call, err := parseCall(source)
		if err != nil {
			o.wrong(t.field, "%s", err)
		} else if t.call = call; !returnsText[call.name] {
			o.wrong(t.field, "%s does not return a string", call.name)
		}
	} else if source != "" {
		t.path = o.path(t.field, parseReference)
	}
	return t
}

// retry reads a state's retriers.
func (o object) retry(s *State) {
	list := o.several("Retry")
	for i, k := range list {
		k.only("a retrier", "ErrorEquals", "IntervalSeconds", "MaxAttempts", "BackoffRate", "MaxDelaySeconds", "JitterStrategy", "Comment")
		interval := k.integer("IntervalSeconds", 1, maxSeconds, 1)
		most := k.integer("MaxDelaySeconds", 1, 31622400, 0)
		if k.has("MaxDelaySeconds") && most > 0 && most <= interval {
			k.wrong("MaxDelaySeconds", "The value should be greater than IntervalSeconds")
		}
		r := retrier{errors: k.errorEquals(i == len(list)-1), interval: time.Duration(interval) * time.Second, most: time.Duration(most) * time.Second,
			attempts: int(k.integer("MaxAttempts", 0, maxSeconds, 3)), rate: k.rate()}
		if value, has := k.fields["JitterStrategy"]; has {
			if r.jitter = value == "FULL"; !r.jitter && value != "NONE" {
				k.wrong("JitterStrategy", "The value should be FULL or NONE")
			}
		}
		s.retriers = append(s.retriers, r)
	}
}

func (o object) rate() float64 {
	value, has := o.fields["BackoffRate"]
	if !has {
		return 2
	}
	number, _ := value.(json.Number)
	rate, err := number.Float64()
	if err != nil || !(rate >= 1) {
		o.wrong("BackoffRate", "The value should be a number of at least 1")
	}
	return rate
}

// catch reads a state's catchers.
func (o object) catch(s *State) {
	list := o.several("Catch")
	for i, k := range list {
		k.only("a catcher", "ErrorEquals", "Next", "ResultPath", "Comment")
		s.catchers = append(s.catchers, catcher{errors: k.errorEquals(i == len(list)-1), next: k.text("Next", true), place: k.resultPath()})
	}
}

// several is a field that is an array of objects.
func (o object) several(name string) (objects []object) {
	value, has := o.fields[name]
	list, is := value.([]any)
	if has && !is {
		o.wrong(name, "The value should be an array, but is %s", kindOf(value))
	}
	for i, item := range list {
		objects = append(objects, o.object(item, fmt.Sprintf("%s/%d", o.place(name), i)))
	}
	return objects
}

// errorEquals is the names of errors. States.ALL is alone, and in the last retrier or catcher.
func (o object) errorEquals(last bool) (errors []string) {
	if o.fields == nil {
		return nil
	}
	list := o.list("ErrorEquals")
	for i, item := range list {
		name, is := item.(string)
		at := fmt.Sprintf("%s/%d", o.place("ErrorEquals"), i)
		switch {
		case !is:
			o.problem(schemaFailed, at, "The value should be a string, but is %s", kindOf(item))
		case name == ErrorAll && (len(list) > 1 || !last):
			o.problem(schemaFailed, at, "States.ALL should be alone, and the last")
		}
		errors = append(errors, name)
	}
	return errors
}
