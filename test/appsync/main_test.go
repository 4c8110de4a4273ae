// Package appsync_test holds the AppSync resolvers, schema/graphql/resolver.js and publish.js, without AWS.
//
// Both are run by an engine (folder engine, in Node.js) that does what AWS documents: the APPSYNC_JS runtime with its util, unit resolvers
// around Lambda functions, batches, typed errors, and subscriptions with filters. The functions are the real ones over real PostgreSQL. What comes
// out must be what the platform's own gateway answers (operations_test.go, failures_test.go, subscriptions_test.go). The runtime's linter
// and types hold the text that Terraform deploys (lint_test.go). The AppSync simulator of npm is a second opinion (simulator_long_test.go).
package appsync_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/schema"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// here is this folder. A bucket changes the process's working directory, so paths are absolute.
var here = func() string {
	_, self, _, _ := runtime.Caller(0)
	return filepath.Dir(self)
}()

// rows is the manifest.
func rows(t testing.TB) manifest.Manifest {
	t.Helper()
	m, err := manifest.Parse(schema.Routes)
	require.NoError(t, err)
	return m
}

func read(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(here, "..", "..", "schema", "graphql", file))
	require.NoError(t, err)
	return string(text)
}

// batched are the fields with batch, as BATCH_FIELDS names them.
func batched(t testing.TB) string {
	t.Helper()
	var fields []string
	for field, row := range rows(t).ByGraphQL() {
		if row.Batch {
			fields = append(fields, field)
		}
	}
	slices.Sort(fields)
	require.NotEmpty(t, fields)
	return strings.Join(fields, ",")
}

// deployed is resolver.js as Terraform deploys it: the names of the batched fields in place of the variable.
func deployed(t testing.TB) string {
	t.Helper()
	names, err := json.Marshal(batched(t))
	require.NoError(t, err)
	text := strings.ReplaceAll(read(t, "resolver.js"), "ctx.env.BATCH_FIELDS", string(names))
	require.NotContains(t, text, "ctx.env", "Terraform knows no other variable")
	return text
}
