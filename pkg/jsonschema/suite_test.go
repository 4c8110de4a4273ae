package jsonschema_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/jsonschema"
)

// TestTheOfficialSuite runs the required tests of JSON-Schema-Test-Suite, which come with a module of the MCP SDK: all but those of what is refused.
func TestTheOfficialSuite(t *testing.T) {
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/google/jsonschema-go").Output()
	require.NoError(t, err)
	for draft, suite := range map[string]struct {
		uri   string
		tests int // at least
	}{"draft7": {"http://json-schema.org/draft-07/schema#", 850}, "draft2020-12": {"https://json-schema.org/draft/2020-12/schema", 1000}} {
		files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(folder)), "jsonschema", "testdata", draft, "*.json"))
		require.NoError(t, err)
		ran := 0
		for _, file := range files {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			var groups []group
			require.NoError(t, json.Unmarshal(data, &groups))
			for _, g := range groups {
				ran += g.run(t, suite.uri, filepath.Join(draft, filepath.Base(file)))
			}
		}
		require.Greater(t, ran, suite.tests, draft)
	}
}

type group struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

// run is how many tests the group has; the schema is of the draft when it names none.
func (g group) run(t *testing.T, uri, file string) int {
	text := string(g.Schema)
	var m map[string]json.RawMessage
	if json.Unmarshal(g.Schema, &m) == nil && m["$schema"] == nil {
		m["$schema"] = json.RawMessage(`"` + uri + `"`)
		with, err := json.Marshal(m)
		require.NoError(t, err)
		text = string(with)
	}
	s, err := jsonschema.Compile(text)
	if err != nil {
		require.Regexp(t, `references out of the schema are not followed$|\$dynamicRef and \$recursiveRef are not supported$`, err.Error(), "%s: %s", file, g.Description)
		return 0
	}
	for _, c := range g.Tests {
		err := s.Validate(string(c.Data))
		require.Equal(t, c.Valid, err == nil, "%s: %s: %s: %v", file, g.Description, c.Description, err)
	}
	return len(g.Tests)
}
