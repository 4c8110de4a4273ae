package e2e

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/local/offline"
)

// The same client asks another server that speaks Bedrock's Converse API, for the model id that the agents are given.
func TestModelElsewhere(t *testing.T) {
	t.Parallel()
	var asked atomic.Value
	model := offline.New(offline.Config{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.URL.Path)
		model.ServeHTTP(w, r)
	}))
	defer server.Close()
	p := startPlatform(t, "AWS_ENDPOINT_URL_BEDROCK_RUNTIME="+server.URL, "MODEL_ID=my.model-1") // which holds its first conversation
	require.Equal(t, "/model/my.model-1/converse-stream", asked.Load())
	require.Contains(t, p.output.String(), "my.model-1")
}

// Bedrock itself takes credentials; without them the platform says what to do.
func TestBedrockWithoutCredentials(t *testing.T) {
	t.Parallel()
	proc, err := launch(command(t.TempDir(), []string{"MODEL=bedrock", "AWS_EC2_METADATA_DISABLED=true", "AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_PROFILE=",
		"AWS_CONFIG_FILE=/nonexistent", "AWS_SHARED_CREDENTIALS_FILE=/nonexistent"}))
	require.NoError(t, err)
	require.Equal(t, 1, proc.exit())
	require.Equal(t, "local: MODEL=bedrock needs AWS credentials; sign in with the aws CLI or set AWS_PROFILE, or leave MODEL out for the offline model\n", proc.stderr.String())
}
