package moto

import (
	_ "embed"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:embed sitecustomize.py
var sitecustomize []byte

// States starts a server whose Step Functions executes state machines, and returns its URL; it ends with the test. Their tasks call functions at that
// URL of AWS Lambda.
func States(t testing.TB, lambda string) string {
	t.Helper()
	at, err := url.Parse(lambda)
	require.NoError(t, err)
	site := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(site, "sitecustomize.py"), sitecustomize, 0o600))
	server, err := Run(t.Context(), "PYTHONPATH="+site, "MOTO_PORT="+at.Port()) // where moto looks for the services that its tasks call
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(server.Log())
		}
		require.NoError(t, server.Stop())
	})
	response, err := http.Post(server.URL+"/moto-api/config", "application/json", strings.NewReader(`{"stepfunctions":{"execute_state_machine":true}}`))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Less(t, response.StatusCode, 300)
	return server.URL
}
