package agent_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/agent"
	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

func TestAnAgentsFetchHosts(t *testing.T) {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	owner := handlertest.Claims(w, tenant.Owner)
	update := func(hosts any) (agent.Agent, *fault.Error) {
		return handlertest.Call[agent.Agent](t, p, "update-agent", functions.UpdateAgent, owner, args{"id": w.AgentID, "input": args{"fetchHosts": hosts}})
	}
	held := func() []string {
		t.Helper()
		hosts, err := agent.FetchHosts(t.Context(), p.DB.App.In(w.TenantID), w.AgentID)
		require.NoError(t, err)
		return hosts
	}
	require.Empty(t, held(), "nothing may be fetched before somebody says so")
	a, err := update([]string{"example.com", "*.example.org", "127.0.0.1", "xn--bcher-kva.example"})
	require.Nil(t, err)
	require.Equal(t, []string{"example.com", "*.example.org", "127.0.0.1", "xn--bcher-kva.example"}, *a.FetchHosts)
	require.Equal(t, *a.FetchHosts, held())
	_, serr := p.DB.Superuser(t).Exec(t.Context(), `update agent_templates set fetch_hosts = '{docs.example.com}'`)
	require.NoError(t, serr)
	_, err = update([]string{})
	require.Nil(t, err)
	require.Empty(t, held(), "none, whatever the template has")
	_, err = update(nil)
	require.Nil(t, err)
	require.Equal(t, []string{"docs.example.com"}, held())
	for _, hosts := range [][]string{{""}, {"https://example.com"}, {"example.com:443"}, {"Example.com"}, {"*example.com"}, {"a.*.com"}, {"*."}, {"a..b"}, {"bücher.example"}, {"a b"}, {"example.com/x"},
		{strings.Repeat("a.", 130) + "com"}, slices.Repeat([]string{"a.com"}, 101)} {
		_, err := update(hosts)
		require.NotNil(t, err, hosts)
		require.Equal(t, fault.ValidationError, err.Type)
	}
}
