package sandbox

import (
	"encoding/json"
	"fmt"
	"strings"

	"modernc.org/quickjs"

	port "github.com/agentplatform/agentplatform/pkg/sandbox"
)

// beyond is memory that the interpreter may have when the worker's watch should have ended it: it stops what would be too much at once.
const beyond = 32 << 20

// run runs the script in an interpreter with ECMAScript's globals and the runner's two functions, which it takes away. The interpreter's own modules std
// and os are not there, and there is nobody to load others.
func (w *worker) run() port.Outcome {
	vm, err := quickjs.NewVM()
	if err != nil {
		return failed(err)
	}
	vm.SetMemoryLimit(uintptr(w.order.Limits.Memory + beyond))
	err = vm.RegisterHostFunc("print", func(args []any) (any, error) {
		w.print(text(args))
		return nil, nil
	})
	if err == nil {
		err = vm.RegisterHostFunc("finish", func(args []any) (any, error) {
			var o port.Outcome
			if err := json.Unmarshal([]byte(text(args)), &o); err != nil {
				return nil, err
			}
			w.end(o)
			return nil, nil
		})
	}
	var start quickjs.Value
	if err == nil {
		start, err = vm.EvalValue("((runner, print, finish) => (request) => runner(request, print, finish))("+port.Runner+", print, finish)", quickjs.EvalGlobal)
	}
	if err == nil {
		_, err = start.Call(quickjs.UndefinedValue, string(w.order.Request))
	}
	if err != nil {
		return failed(err)
	}
	for {
		if n, err := vm.ExecutePendingJobs(); n == 0 && err == nil {
			return port.Unsettled
		}
	}
}

func text(args []any) string {
	if len(args) == 0 {
		return ""
	}
	s, _ := args[0].(string)
	return s
}

// failed is the outcome of a script that did not come as far as the runner's care.
func failed(err error) port.Outcome {
	if strings.Contains(err.Error(), "out of memory") || strings.Contains(err.Error(), "OOM") {
		return port.Outcome{Status: port.StatusMemory}
	}
	return port.Outcome{Status: port.StatusError, Error: fmt.Sprint(err)}
}
