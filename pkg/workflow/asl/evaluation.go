package asl

import (
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// What one call may take of the machine that it runs on, whatever a definition says.
const (
	MaxWork = 1 << 20              // values visited, and sixteenths of the bytes that are made: some tenths of a second
	maxMade = 4 * workflow.MaxData // bytes of texts that intrinsic functions make
)

// evaluation is what a field's path or template sees, and what it has cost.
type evaluation struct {
	data     any // $
	context  any // $$
	work     int
	made     int
	patterns map[*condition]*regexp.Regexp
	failed   *Failure // the first; from then on nothing that comes out counts
}

func evaluate(data any, c Context) *evaluation {
	return &evaluation{data: data, context: map[string]any(c)}
}

// fail ends it.
func (e *evaluation) fail(name, format string, args ...any) {
	if e.failed == nil {
		e.failed = failure(name, format, args...)
	}
}

func failure(name, format string, args ...any) *Failure {
	return &Failure{Error: name, Cause: fmt.Sprintf(format, args...)}
}

// spend says whether there is that much work left.
func (e *evaluation) spend(work int) bool {
	if e.work += work; e.work > MaxWork {
		e.fail(ErrorRuntime, "The state looks at more than %d values", MaxWork)
	}
	return e.failed == nil
}

// make says whether so many bytes may be made.
func (e *evaluation) make(bytes int) bool {
	if e.made += bytes; e.made > maxMade {
		e.fail(ErrorDataLimit, "Intrinsic functions return more than %d bytes", maxMade)
	}
	return e.spend(bytes/16 + 1)
}

// fits fails if a value is too large for another state.
func fits(what string, value any) *Failure {
	if room(value, workflow.MaxData, MaxDepth) < 0 {
		return failure(ErrorDataLimit, "%s has a size exceeding the maximum number of bytes service limit", what)
	}
	return nil
}

// selected is what a path finds, for a field that has to find something. A path that may find several finds a list, which may be empty.
func (e *evaluation) selected(p *path) (any, bool) {
	if p == nil {
		return e.data, true
	}
	return e.find(p)
}

// text is a cause's word for a value: never what somebody wrote in it.
func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case json.Number:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "an array"
	}
	return "an object"
}
