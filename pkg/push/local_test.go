package push_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/local/outbox"
)

func TestContractLocal(t *testing.T) {
	dir := t.TempDir()
	o, err := outbox.Open(outbox.Config{Dir: dir})
	require.NoError(t, err)
	testContract(t, adapter{Carrier: o, all: true,
		sent: func(t *testing.T, endpoint string) []string { return payloads(t, o, endpoint) },
		data: func(t *testing.T, endpoint string) string {
			text, err := os.ReadFile(filepath.Join(dir, "devices", endpoint+".json"))
			require.NoError(t, err)
			var device struct {
				UserData string `json:"user_data"`
			}
			require.NoError(t, json.Unmarshal(text, &device))
			return device.UserData
		},
		disable: func(t *testing.T, endpoint string) { require.NoError(t, o.Unregister(t.Context(), endpoint)) }, // no platform refuses a token here
	})
}
