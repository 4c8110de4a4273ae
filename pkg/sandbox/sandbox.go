// Package sandbox is the port to where code of a model runs: Amazon Bedrock AgentCore Code Interpreter in the cloud (pkg/cloud/codeinterpreter), a worker
// process of the platform's own on one machine (pkg/local/sandbox).
//
// What holds:
//   - A script is given its input and nothing else: no network, no files, no environment, no modules, no timers, no clock but Date, nothing of the script
//     before it. It is ECMAScript 2023 and a console; what an interpreter has beyond that is taken away (runner.js), so that a script runs everywhere or
//     nowhere.
//   - Whatever a script does, Run comes back, with a Result that says how it ended: every limit has a status of its own. An error is never the script's
//     doing: a script that is refused unseen (fault.ValidationError), ErrBusy, the caller's own end, or a sandbox that is broken.
//   - What a script leaves behind ends with it: its process, its memory, its session.
package sandbox

import (
	"context"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// Limits bound a script.
type Limits struct {
	CPU    time.Duration // of computing
	Wall   time.Duration // from the script's start to its end; on a crowded machine computing takes longer
	Memory int           // bytes of the script's own values
	Output int           // bytes of Stdout and Value together
	Code   int           // bytes of Script.Code
	Input  int           // bytes of Script.Input
}

// Default are the platform's limits, whichever sandbox runs a script.
var Default = Limits{CPU: 10 * time.Second, Wall: 20 * time.Second, Memory: 128 << 20, Output: 64 << 10, Code: 64 << 10, Input: 256 << 10}

// JavaScript is the one language.
const JavaScript = "javascript"

// Sandbox runs scripts. It is safe for concurrent use.
type Sandbox interface {
	// Run runs a script to its end, or to the first limit that it meets.
	Run(ctx context.Context, s Script) (Result, error)
}

// Script is what to run: the body of an async function of one parameter, input. What it returns is the run's value.
type Script struct {
	Language string          // JavaScript
	Code     string          // UTF-8
	Input    json.RawMessage // any JSON value; empty: input is undefined
}

// Status is how a run ended.
type Status string

// How a run can end.
const (
	StatusOK      Status = "ok"
	StatusError   Status = "error"   // it threw, or cannot be parsed, or waits for what never comes
	StatusTimeout Status = "timeout" // Limits.CPU or Limits.Wall
	StatusMemory  Status = "memory"  // Limits.Memory, or a value larger than any that an interpreter can have
	StatusOutput  Status = "output"  // Limits.Output; Stdout is what was written up to there
)

// Result is what came of a script.
type Result struct {
	Status     Status
	Stdout     string          // what went to the console, all levels in order. UTF-8 without NUL: each is U+FFFD, as is a lone surrogate
	Value      json.RawMessage // what it returned, in which likewise; empty unless StatusOK, and for undefined
	Error      string          // for the model: what went wrong and, if known, in which line; empty for StatusOK
	DurationMs int64           // from the script's start to its end
}

// Check refuses a script that no sandbox of these limits takes.
func (l Limits) Check(s Script) error {
	switch {
	case s.Language != JavaScript:
		return fault.Invalid("language must be %s", JavaScript)
	case strings.TrimSpace(s.Code) == "":
		return fault.Invalid("code must not be empty")
	case len(s.Code) > l.Code:
		return fault.Invalid("code is longer than %d bytes", l.Code)
	case !utf8.ValidString(s.Code):
		return fault.Invalid("code must be UTF-8")
	case len(s.Input) > l.Input:
		return fault.Invalid("input is longer than %d bytes", l.Input)
	case len(s.Input) > 0 && !json.Valid(s.Input):
		return fault.Invalid("input must be JSON")
	}
	return nil
}
