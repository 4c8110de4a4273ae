// Package workflow_test holds the workflows of schema/workflow: asl-validator reads their definitions, and moto's Step Functions, an
// implementation of the language by others, executes them with the functions' real binaries, real PostgreSQL and the offline model behind
// Bedrock's wire format. What is expected is read from both sides: from the engine's execution and from the platform's database.
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

// deployed is a definition with the functions' ARNs in it, their names after that prefix.
func deployed(t testing.TB, workflow, prefix string) string {
	t.Helper()
	text := definitions(t)[workflow]
	require.NotEmpty(t, text)
	return placeholder.ReplaceAllString(text, "arn:aws:lambda:us-east-1:123456789012:function:"+prefix+"$1")
}
