package codeinterpreter

import (
	_ "embed" // program.js
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/sandbox"
)

//go:embed program.js
var program string

// write is the program for a script.
func write(l sandbox.Limits, s sandbox.Script, mark string) (string, error) {
	request, err := json.Marshal(string(l.Request(s)))
	if err != nil {
		return "", err
	}
	unsettled, err := json.Marshal(sandbox.Unsettled)
	if err != nil {
		return "", err
	}
	// A script waits for nothing but its processor, so that its time on a machine of its own is what it has computed.
	return fmt.Sprintf("%s(%s, %s, %q, {milliseconds: %d, mebibytes: %d, bytes: %d}, %s)", strings.TrimSpace(program), strings.TrimSpace(sandbox.Runner), request, mark,
		l.CPU.Milliseconds(), l.Memory>>20, l.Output, unsettled), nil
}

// read is what a program's console output says: what the script printed, and its outcome; ok is false where there is none.
func read(output, mark string) (stdout string, outcome sandbox.Outcome, ok bool) {
	stdout, rest, found := strings.Cut(output, mark)
	if !found {
		return stdout, outcome, false
	}
	line, _, _ := strings.Cut(rest, "\n")
	return stdout, outcome, json.Unmarshal([]byte(line), &outcome) == nil
}
