package compliance_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/functions/compliance"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestComplianceEventByHash(t *testing.T) {
	p := handlertest.New(t, "ops@acme.test")
	w := p.DB.World(t, "globex")
	hash := strings.Repeat("a1", 32)
	_, err := p.DB.Connect(t, p.DB.LedgerURL).Exec(t.Context(), `insert into audit_events
		(tenant_id, event_id, chain_position, occurred_at, recorded_at, actor, actor_type, source, event_type, event_hash, prev_hash, canonical, payload)
		values ($1, $2, 1, now(), now(), $3, 'user', 'graphql', 'agent.created', $4, 'GENESIS', '{}', '{"agentId": "x"}')`, w.TenantID, ident.New(), w.UserID, hash)
	require.NoError(t, err)

	ask := func(claims tenant.Claims, hash string) (map[string]any, *fault.Error) {
		return handlertest.Call[map[string]any](t, p, "compliance-event-by-hash", compliance.ComplianceEventByHash, claims, map[string]any{"eventHash": hash})
	}
	ops := tenant.Claims{"email": "Ops@acme.test", "email_verified": true} // an operator needs no tenant
	got, refused := ask(ops, hash)
	require.Nil(t, refused)
	require.Equal(t, w.TenantID, got["tenantId"])
	require.Equal(t, map[string]any{"status": "PENDING", "cadenceId": nil}, got["anchor"])
	_, refused = ask(ops, strings.Repeat("00", 32))
	require.Equal(t, fault.NotFound, refused.Type)
	for name, claims := range map[string]tenant.Claims{
		"an owner":   handlertest.Claims(w, tenant.Owner),
		"unverified": {"email": "ops@acme.test", "email_verified": false},
		"nobody":     {},
	} {
		_, refused := ask(claims, hash)
		require.Equal(t, fault.Forbidden, refused.Type, name)
	}
}
