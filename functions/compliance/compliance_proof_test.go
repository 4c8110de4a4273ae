package compliance_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/functions/compliance"
	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/ledger"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// TestComplianceProof: an act, drained and anchored by the real ledger, and its proof.
func TestComplianceProof(t *testing.T) {
	c := newConsole(t).withBuckets()
	env := c.Env(t, "publish-anchor")
	id, outbox := ident.New(), c.Env(t, "create-compliance-export").Outbox()
	require.NoError(t, outbox.InTenant(c.acme.Context, c.DB.App, c.acme.TenantID, func(tx pgx.Tx) error {
		return outbox.Record(c.acme.Context, tx, audit.Event{EventID: id, Type: audit.AgentCreated, Payload: map[string]any{"name": "Ada"}})
	}))
	prove := func(id string) (string, *fault.Error) {
		return ask[string](c, "compliance-proof", compliance.ComplianceProof, fields{"eventId": id})
	}
	_, refused := prove(id)
	require.Equal(t, fault.ValidationError, refused.Type, "recorded, and not in a chain yet")

	now := time.Now()
	l := ledger.New(ledger.Config{DB: env.Ledger(), Bucket: env.Audit(), Signer: env.Sign(), Key: []byte(handlertest.EmissionKey), Origin: handlertest.Origin,
		Now: func() time.Time { return now }})
	require.NoError(t, l.Drain(t.Context()))
	_, refused = prove(id)
	require.Equal(t, fault.ValidationError, refused.Type, "PENDING")

	now = now.Add(15 * time.Minute)
	require.NoError(t, l.PublishAnchor(t.Context()))
	file, refused := prove(id)
	require.Nil(t, refused)
	public, err := env.Sign().Public(t.Context())
	require.NoError(t, err)
	key, err := anchor.LogVerifier(handlertest.Origin, public)
	require.NoError(t, err)
	checked, err := anchor.Check([]byte(file), []anchor.Verifier{key})
	require.NoError(t, err)
	require.Equal(t, id, checked.EventID)
	shown := must[fields](c, "compliance-event", compliance.ComplianceEvent, fields{"eventId": id})
	require.Equal(t, "ANCHORED", shown["anchor"].(fields)["status"])

	for _, id := range []string{ident.New(), "x"} {
		_, refused = prove(id)
		require.Equal(t, fault.NotFound, refused.Type)
	}
	c.log.Tamper(`update audit_events set canonical = replace(canonical, 'Ada', 'Eve') where event_id = $1`, id)
	_, refused = prove(id)
	require.Equal(t, fault.InternalError, refused.Type)
	require.Contains(t, refused.Message, "run audit-verifier verify")
}
