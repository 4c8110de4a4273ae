package workflow_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/workflow"
	"github.com/agentplatform/agentplatform/pkg/workflow/asl"
	"github.com/agentplatform/agentplatform/test/npm"
)

// judged is a definition with what there is to say of it.
type judged struct {
	Name       string          `json:"name"`
	Definition json.RawMessage `json:"definition"` // in whole, or
	States     json.RawMessage `json:"states"`     // its states; the first is where it starts
	Wrong      *string         `json:"wrong"`      // JSON pointer to what is wrong; nil: nothing is
	Otherwise  string          `json:"otherwise"`  // what asl-validator makes of it, where it judges otherwise
}

// asl-validator and package asl judge definitions alike, and package asl says where something is wrong; what asl-validator does not see is in the list.
func TestJudges(t *testing.T) {
	text, err := os.ReadFile("testdata/definitions.json")
	require.NoError(t, err)
	var all []judged
	decoder := json.NewDecoder(bytes.NewReader(placeholder.ReplaceAll(text, []byte(arn+"$1"))))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&all))
	for i := range all {
		if all[i].Definition == nil {
			all[i].Definition = whole(t, all[i].States)
		}
	}
	for _, x := range corpus(t) {
		all = append(all, judged{Name: x.path, Definition: json.RawMessage(x.definition), Otherwise: x.Refused})
	}
	for name := range definitions(t) {
		all = append(all, judged{Name: name, Definition: json.RawMessage(deployed(t, name))})
	}
	verdicts := judge(t, all)
	for i, x := range all {
		t.Run(x.Name, func(t *testing.T) {
			_, err := asl.Parse(string(x.Definition), asl.Dialect{})
			refused := new(workflow.DefinitionError)
			if errors.As(err, &refused) {
				var at []string
				for _, p := range refused.Problems {
					at = append(at, p.Location)
				}
				require.NotNil(t, x.Wrong, "%v", err)
				require.Contains(t, at, *x.Wrong, "%v", err)
			}
			require.Equal(t, x.Wrong == nil, err == nil, "%v", err)
			good := verdicts[i] == ""
			require.Equal(t, (x.Wrong == nil) == (x.Otherwise == ""), good, "asl-validator: %q", verdicts[i])
		})
	}
}

// judge is what asl-validator finds wrong with each definition.
func judge(t testing.TB, all []judged) (verdicts []string) {
	t.Helper()
	npm.Install(t, ".")
	var list []json.RawMessage
	for _, x := range all {
		list = append(list, x.Definition)
	}
	node := exec.CommandContext(t.Context(), "node", "judge.mjs")
	node.Stdin = bytes.NewReader(text(t, list))
	output, err := node.Output()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(output, &verdicts))
	require.Len(t, verdicts, len(all))
	return verdicts
}
