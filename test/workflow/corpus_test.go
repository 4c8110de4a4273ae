package workflow_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// example is a definition and its runs. testdata/corpus has them, by subject, and a README that says how one is written.
type example struct {
	Name string `json:"name"`

	// What is defined, by one of these.
	Definition json.RawMessage            `json:"definition"` // in whole
	States     json.RawMessage            `json:"states"`     // the first is where it starts
	Rule       json.RawMessage            `json:"rule"`       // a Choice Rule, and the inputs that it is for and not for
	Yes        []json.RawMessage          `json:"yes"`
	No         []json.RawMessage          `json:"no"`
	Values     map[string]json.RawMessage `json:"values"` // paths and intrinsic functions, each with what it makes of the input

	// Refused tells that asl-validator refuses the definition, and why it should not.
	Refused string `json:"refused"`

	Input   json.RawMessage `json:"input"` // of Values
	Differs string          `json:"differs"`
	Runs    []run           `json:"runs"`

	path, machine, definition string
}

// run is an input and how it ends, by the language's specification and AWS's documentation.
type run struct {
	Input  json.RawMessage `json:"input"`  // {} if there is none
	Output json.RawMessage `json:"output"` // normal
	Status workflow.Status `json:"status"` // SUCCEEDED, or FAILED if there is an Error
	Error  string          `json:"error"`
	Cause  string          `json:"cause"` // with an Error of the language's own, any if it is empty: the words for those are each engine's

	// Differs tells where moto is wrong, with the documentation's sentence that says so: nothing is asked of moto then.
	Differs string `json:"differs"`
	// History tells where moto is wrong in the history only.
	History string `json:"history"`
}

// corpus reads the examples; a mistake in one is a failure. A routine is among them.
func corpus(t testing.TB) (all []*example) {
	t.Helper()
	files, err := filepath.Glob("testdata/corpus/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var found []*example
		decoder := json.NewDecoder(bytes.NewReader(placeholder.ReplaceAll(text, []byte(arn+"$1"))))
		decoder.DisallowUnknownFields()
		require.NoError(t, decoder.Decode(&found), file)
		names := map[string]bool{}
		for i, x := range found {
			subject := strings.TrimSuffix(filepath.Base(file), ".json")
			x.path, x.machine = subject+"/"+x.Name, fmt.Sprintf("%s-%d", subject, i)
			require.False(t, x.Name == "" || names[x.Name], "%s: a name of its own", x.path)
			names[x.Name] = true
			x.expand(t)
		}
		all = append(all, found...)
	}
	return append(all, compiled(t))
}

// expand makes the definition and the runs of what is written in short.
func (x *example) expand(t testing.TB) {
	t.Helper()
	switch {
	case x.Definition != nil:
		x.definition = string(x.Definition)
	case x.States != nil:
		x.definition = string(whole(t, x.States))
	case x.Rule != nil:
		x.definition = `{"StartAt": "Each", "States": {"Each": {"Type": "Map", "End": true, "ItemProcessor": {"StartAt": "Choose", "States": {
			"Choose": {"Type": "Choice", "Choices": [` + strings.TrimSuffix(strings.TrimSpace(string(x.Rule)), "}") + `, "Next": "Yes"}], "Default": "No"},
			"Yes": {"Type": "Pass", "Result": "yes", "End": true}, "No": {"Type": "Pass", "Result": "no", "End": true}}}}}}`
		output := slices.Concat(slices.Repeat([]string{"yes"}, len(x.Yes)), slices.Repeat([]string{"no"}, len(x.No)))
		x.Runs = []run{{Input: text(t, slices.Concat(x.Yes, x.No)), Output: text(t, output), Differs: x.Differs}}
	default:
		parameters := map[string]string{}
		for value := range x.Values {
			parameters[value+".$"] = value
		}
		x.definition = `{"StartAt": "Make", "States": {"Make": {"Type": "Pass", "Parameters": ` + string(text(t, parameters)) + `, "End": true}}}`
		x.Runs = []run{{Input: x.Input, Output: text(t, x.Values), Differs: x.Differs}}
	}
	require.NotEmpty(t, x.Runs, x.path)
	for i := range x.Runs {
		r := &x.Runs[i]
		require.True(t, (r.Output == nil) != (r.Status == "" && r.Error == ""), "%s, run %d: an output, or an error or status", x.path, i)
		if r.Input == nil {
			r.Input = json.RawMessage(`{}`)
		}
		if r.Status == "" {
			r.Status = workflow.Succeeded
			if r.Error != "" {
				r.Status = workflow.Failed
			}
		}
	}
}

// whole is the definition of states, of which the first is where it starts.
func whole(t testing.TB, states json.RawMessage) json.RawMessage {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(states))
	_, err := decoder.Token()
	require.NoError(t, err)
	first, err := decoder.Token()
	require.NoError(t, err)
	return text(t, map[string]any{"StartAt": first, "States": states})
}

func text(t testing.TB, value any) json.RawMessage {
	t.Helper()
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	require.NoError(t, encoder.Encode(value))
	return b.Bytes()
}

// Both engines end each run as the corpus says, by the same history.
func TestCorpus(t *testing.T) {
	t.Parallel()
	examples := corpus(t)
	said, both := map[string]map[string]ended{}, sync.WaitGroup{}
	for name, start := range engines {
		f := newFunctions(t)
		f.engine = start(t, f.invoke)
		said[name] = map[string]ended{}
		both.Go(func() { runAll(t.Context(), f.engine, examples, name == "moto", said[name]) })
	}
	both.Wait()
	for _, x := range examples {
		for i, r := range x.Runs {
			t.Run(fmt.Sprintf("%s/%d", x.path, i), func(t *testing.T) {
				var histories []string
				for _, engine := range slices.Sorted(maps.Keys(engines)) {
					if engine == "moto" && r.Differs != "" {
						continue
					}
					e := said[engine][keyOf(x, i)]
					r.check(t, engine, e)
					if engine != "moto" || r.History == "" {
						histories = append(histories, unnamed.Replace(e.history(t, x.ordered())))
					}
				}
				if len(histories) == 2 {
					require.Equal(t, histories[1], histories[0], "the histories of %s", strings.Join(slices.Sorted(maps.Keys(engines)), " and "))
				}
			})
		}
	}
}

// unnamed are errors of the language that moto reports as States.Runtime, with Python's words, for want of a name.
var unnamed = strings.NewReplacer("States.IntrinsicFailure", "States.Runtime", "States.ResultPathMatchFailure", "States.Runtime", "States.NoChoiceMatched", "States.Runtime")

func (r run) check(t *testing.T, engine string, e ended) {
	t.Helper()
	require.NoError(t, e.err, engine)
	if engine == "moto" {
		r.Error = unnamed.Replace(r.Error)
	}
	require.Equal(t, []any{r.Status, r.Error}, []any{e.Status, e.Error}, "%s: %s; %s\n%s", engine, e.Cause, e.Output, e.history(t, true))
	if r.Cause != "" || !strings.HasPrefix(r.Error, "States.") {
		require.Equal(t, normal(t, text(t, r.Cause)), normal(t, text(t, e.Cause)), engine)
	}
	if r.Output != nil {
		require.Equal(t, normal(t, r.Output), normal(t, e.Output), engine)
	}
}
