package sandbox

import (
	_ "embed" // runner.js
	"encoding/json"
	"fmt"
	"time"
)

// Runner is the JavaScript function that a sandbox runs a script by, as an interpreter reads it: runner(request, print, finish). See runner.js.
//
//go:embed runner.js
var Runner string

// Request is what the runner is given for s.
func (l Limits) Request(s Script) []byte {
	text, err := json.Marshal(struct {
		Code   string          `json:"code"`
		Input  json.RawMessage `json:"input,omitempty"`
		Output int             `json:"output"`
	}{s.Code, s.Input, l.Output})
	if err != nil {
		panic(err) // Limits.Check has seen that both can be written
	}
	return text
}

// Outcome is how a script ended: what the runner hands to finish, or what a sandbox knows by itself.
type Outcome struct {
	Status Status  `json:"status"`
	Value  *string `json:"value,omitempty"` // JSON text
	Error  string  `json:"error,omitempty"`
}

// Unsettled is the outcome of a script that waits for what nobody will settle.
var Unsettled = Outcome{Status: StatusError, Error: "the script waits for a promise that nothing settles; there are no timers, and nothing outside to wait for"}

const maxError = 4 << 10 // bytes of Result.Error

// Result is the outcome within the limits.
func (l Limits) Result(o Outcome, stdout string, took time.Duration) Result {
	r := Result{Status: o.Status, Stdout: stdout, DurationMs: took.Milliseconds()}
	switch o.Status {
	case StatusOK:
		if o.Value != nil {
			r.Value = cleanJSON([]byte(*o.Value))
		}
	case StatusError:
		r.Error = clip(clean(o.Error), maxError)
	case StatusMemory, StatusOutput, StatusTimeout:
	default: // a script that speaks for its runner
		r.Status, r.Error = StatusError, "the script ended without an outcome"
	}
	if !json.Valid(r.Value) {
		r.Value = nil
	}
	r.Stdout = clean(r.Stdout)
	if len(r.Stdout)+len(r.Value) > l.Output {
		r.Status, r.Stdout, r.Value = StatusOutput, clip(r.Stdout, l.Output), nil
	}
	switch r.Status {
	case StatusTimeout:
		r.Error = fmt.Sprintf("the script was stopped: it ran longer than %s", l.CPU)
	case StatusMemory:
		r.Error = fmt.Sprintf("the script was stopped: it needs more than %d MiB of memory", l.Memory>>20)
	case StatusOutput:
		r.Error = fmt.Sprintf("the script was stopped: what it prints and returns is longer than %d KiB together", l.Output>>10)
	}
	return r
}
