package asl

import (
	"time"
)

// maxSeconds is the greatest number of seconds that the language takes: some three years.
const maxSeconds = 99_999_999

// seconds is a number of seconds in the definition, or where it is.
type seconds struct {
	field string // the field's name, in causes
	value int64
	path  *path
}

// from is how many there are: least at least. A field that is not there is 0.
func (s seconds) from(e *evaluation, least int64) time.Duration {
	n := s.value
	if s.path != nil {
		value, has := e.find(s.path)
		if !has {
			e.fail(ErrorRuntime, "The %s parameter does not reference an input value: %s", s.field, s.path.text)
			return 0
		}
		var is bool
		if n, is = integer(value); !is {
			e.fail(ErrorRuntime, "The %s parameter cannot be parsed as a long value: %s is %s", s.field, s.path.text, kindOf(value))
			return 0
		}
		if n < least || n > maxSeconds {
			e.fail(ErrorRuntime, "The %s parameter is not within %d and %d: %s", s.field, least, maxSeconds, s.path.text)
			return 0
		}
	}
	return time.Duration(n) * time.Second
}

// wait is what a Wait state waits for.
type wait struct {
	seconds *seconds // else a time:
	at      time.Time
	path    *path // TimestampPath
}

// Until is when a Wait that was entered then is over; it may be in the past.
func (s *State) Until(input any, c Context, entered time.Time) (time.Time, *Failure) {
	e, w := evaluate(input, c), s.wait
	switch {
	case w.seconds != nil:
		return entered.Add(w.seconds.from(e, 0)), e.failed
	case w.path == nil:
		return w.at, nil
	}
	value, has := e.find(w.path)
	if !has {
		return time.Time{}, failure(ErrorRuntime, "The TimestampPath parameter does not reference an input value: %s", w.path.text)
	}
	t, is := timestamp(value)
	if !is {
		return time.Time{}, failure(ErrorRuntime, "The TimestampPath parameter does not reference a valid ISO-8601 extended offset date-time format string: %s",
			w.path.text)
	}
	return t.(time.Time), nil
}

// Deadline is how long a Task may take, and how long it may be without a heartbeat; 0 is without end. Its paths see the raw input through InputPath, not
// what Parameters make of it.
func (s *State) Deadline(raw any, c Context) (timeout, heartbeat time.Duration, f *Failure) {
	e := evaluate(raw, c)
	if e.data = s.input.from(e); e.failed != nil {
		return 0, 0, e.failed
	}
	timeout, heartbeat = s.timeout.from(e, 1), s.beat.from(e, 1)
	return timeout, heartbeat, e.failed
}

// text is a text in the definition, or what finds or makes it.
type text struct {
	field string
	value string
	source
}

func (t text) from(e *evaluation) string {
	var value any = t.value
	switch {
	case t.path != nil:
		var has bool
		if value, has = e.find(t.path); !has {
			e.fail(ErrorRuntime, "The %s parameter does not reference an input value: %s", t.field, t.path.text)
			return ""
		}
	case t.call != nil:
		value = e.run(t.call)
	}
	text, is := value.(string)
	if !is {
		e.fail(ErrorRuntime, "The %s parameter is %s, not a string", t.field, kindOf(value))
	}
	return text
}

// Fails is what a Fail state fails with, which may be that its paths find nothing: States.Runtime.
func (s *State) Fails(input any, c Context) Failure {
	e := evaluate(input, c)
	name, cause := s.failure[0].from(e), s.failure[1].from(e)
	if e.failed != nil {
		return *e.failed
	}
	return Failure{Error: name, Cause: cause}
}
