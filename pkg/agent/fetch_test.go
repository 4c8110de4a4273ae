package agent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/agent"
)

func TestMayFetch(t *testing.T) {
	hosts := []string{"example.com", "*.example.org", "127.0.0.1", "localhost"}
	for host, may := range map[string]bool{
		"example.com": true, "EXAMPLE.com": true, "example.com.": true, "www.example.com": false, "notexample.com": false, "example.com.evil.test": false,
		"www.example.org": true, "a.b.example.org": true, "example.org": false, "notexample.org": false, ".example.org": false, "*.example.org": true,
		"127.0.0.1": true, "127.0.0.2": false, "localhost": true, "": false, ".": false,
	} {
		require.Equal(t, may, agent.MayFetch(hosts, host), host)
	}
	require.False(t, agent.MayFetch(nil, "example.com"))
	require.True(t, agent.MayFetch([]string{"*"}, "example.com"))
	require.False(t, agent.MayFetch([]string{"*.*", ""}, "example.com"))
}
