package push_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/local/outbox"
)

func TestContractLocal(t *testing.T) {
	dir := t.TempDir()
	o, err := outbox.Open(outbox.Config{Dir: dir})
	require.NoError(t, err)
	testContract(t, adapter{Carrier: o, all: true,
		sent: func(t *testing.T, endpoint string) (all []string) {
			entries, more, err := o.List("", outbox.MaxPage)
			require.NoError(t, err)
			require.False(t, more)
			for _, e := range slices.Backward(entries) {
				if e.To != endpoint {
					continue
				}
				raw, err := o.Read(e.ID)
				require.NoError(t, err)
				var push struct{ Payload json.RawMessage }
				require.NoError(t, json.Unmarshal(raw, &push))
				var payload bytes.Buffer
				require.NoError(t, json.Compact(&payload, push.Payload))
				all = append(all, payload.String())
			}
			return all
		},
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
