package offline_test

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/bedrock"
	"github.com/agentplatform/agentplatform/pkg/local/offline"
	"github.com/agentplatform/agentplatform/pkg/model"
)

// BenchmarkConverse is one call through the real SDK client over loopback HTTP, client and server in this process.
func BenchmarkConverse(b *testing.B) {
	server := httptest.NewServer(offline.New(offline.Config{}))
	defer server.Close()
	client, err := bedrock.New(bedrock.Config{Region: "us-east-1", Endpoint: server.URL})
	require.NoError(b, err)
	defer client.Close()
	for name, text := range map[string]string{"one-word": "/say ok", "greeting": "Hello there, can you help me?"} {
		request := model.Request{ModelID: offline.ModelID, System: "You are Helper.", Messages: said(text)}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := client.Converse(b.Context(), request, nil)
				require.NoError(b, err)
			}
		})
		b.Run(name+"-32", func(b *testing.B) {
			b.SetParallelism(16) // × GOMAXPROCS goroutines
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					if _, err := client.Converse(b.Context(), request, nil); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
