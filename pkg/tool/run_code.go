package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/agentplatform/agentplatform/pkg/sandbox"
	"github.com/agentplatform/agentplatform/pkg/text"
)

const (
	// codeTimeout is longer than a script's own limits, a place in the line, and a session of a cloud's to begin and end with.
	codeTimeout = 90 * time.Second

	// codeOutput is how long the result may be as JSON. A turn takes 64 KiB of any tool.
	codeOutput = 64 << 10
	codeRoom   = 1 << 10 // for all but its stdout, where there is no value
)

// RunCode runs a script of the model's. Whatever becomes of the script is a result; an error is that it did not run.
func RunCode(s sandbox.Sandbox) Tool {
	l := sandbox.Default
	return Tool{
		Name: "run_code",
		Description: fmt.Sprintf("Runs JavaScript (ECMAScript 2023) and returns what it returns. Use it to calculate, and to work on text and data, rather than doing it in your head. "+
			"The code is the body of an async function: end it with return. Its value must be JSON; console.log is returned too, as stdout. "+
			"There is no network, no file, no environment, no module, no timer, and nothing of an earlier run: pass data in input. "+
			"At most %d s, %d MiB of memory, %d KiB of stdout and value together.", l.CPU/time.Second, l.Memory>>20, l.Output>>10),
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{
			"code":{"type":"string","minLength":1,"maxLength":%d,"description":"For example: return input.prices.reduce((a, b) => a + b)"},
			"input":{"description":"Any JSON; the code has it as input."}},
			"required":["code"],"additionalProperties":false}`, l.Code)),
		Timeout:    codeTimeout,
		Idempotent: true, // a script can change nothing
		Run: func(ctx context.Context, c Call) (any, error) {
			var in struct {
				Code  string          `json:"code"`
				Input json.RawMessage `json:"input"`
			}
			if err := Decode(c.Input, &in); err != nil {
				return nil, err
			}
			r, err := s.Run(ctx, sandbox.Script{Language: sandbox.JavaScript, Code: in.Code, Input: in.Input})
			if err != nil {
				return nil, err
			}
			return ran(r)
		},
	}
}

// codeResult is what the model is told.
type codeResult struct {
	Status     sandbox.Status  `json:"status"`          // ok, error, timeout, memory, output
	Value      json.RawMessage `json:"value,omitempty"` // of ok
	Stdout     string          `json:"stdout,omitempty"`
	Error      string          `json:"error,omitempty"` // which limit it was, or what went wrong and where
	DurationMs int64           `json:"durationMs"`
}

// ran is a result that fits: JSON writes some characters in up to six bytes, so that what a sandbox lets through may be too long.
func ran(r sandbox.Result) (json.RawMessage, error) {
	out := codeResult{r.Status, r.Value, r.Stdout, r.Error, r.DurationMs}
	whole, err := json.Marshal(out)
	if err != nil || len(whole) <= codeOutput {
		return whole, err
	}
	out.Status, out.Value = sandbox.StatusOutput, nil
	out.Error = fmt.Sprintf("what the script prints and returns is longer than %d KiB as JSON: stdout is its beginning, there is no value", codeOutput>>10)
	out.Stdout, _ = text.Cut(out.Stdout, codeOutput-codeRoom)
	return json.Marshal(out)
}
