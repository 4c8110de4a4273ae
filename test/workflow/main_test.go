// Package workflow_test holds the platform's workflow engine (pkg/local/workflow, with the language in pkg/workflow/asl) against others' judgement, and
// the workflows of schema/workflow against both engines.
//
//   - testdata/corpus has definitions with inputs, and how they end. moto's Step Functions, an implementation of the language by others, and the
//     platform's engine run them behind the same port: same status, output, error and history.
//   - testdata/definitions.json has definitions with what is wrong with them. asl-validator and package asl judge them, those of the corpus and those of
//     schema/workflow alike.
//   - auto-thread runs on both engines with the functions' real binaries, real PostgreSQL and the offline model behind Bedrock's wire format. What is
//     expected is read from both sides: from the engine's run and from the platform's database.
//
// Without moto or Node.js the tests fail.
package workflow_test

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/schema"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// definitions are the texts of schema/workflow, by the workflow's name.
func definitions(t testing.TB) map[string]string {
	t.Helper()
	files, err := fs.Glob(schema.Workflows, "workflow/*.asl.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	found := map[string]string{}
	for _, name := range files {
		text, err := schema.Workflows.ReadFile(name)
		require.NoError(t, err)
		found[strings.ReplaceAll(strings.TrimSuffix(path.Base(name), ".asl.json"), "_", "-")] = string(text)
	}
	return found
}

var placeholder = regexp.MustCompile(`\$\{([a-z-]+)\}`)

// deployed is a definition with the functions' ARNs in it.
func deployed(t testing.TB, workflow string) string {
	t.Helper()
	text := definitions(t)[workflow]
	require.NotEmpty(t, text)
	return placeholder.ReplaceAllString(text, arn+"$1")
}
