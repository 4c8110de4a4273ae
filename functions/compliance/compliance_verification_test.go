package compliance_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/functions/compliance"
	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/sign"
)

func TestComplianceVerification(t *testing.T) {
	c := newConsole(t).withBuckets()
	state := func() fields {
		return must[fields](c, "compliance-verification", compliance.ComplianceVerification, fields{})
	}
	public, err := c.Env(t, "compliance-verification").PublicKey()(t.Context())
	require.NoError(t, err)
	pem, err := sign.PublicPEM(public)
	require.NoError(t, err)
	require.Equal(t, fields{"lastAnchor": nil, "beaconedAt": nil, "pendingEvents": 0.0, "quarantinedEvents": 0.0, "events": 0.0, "tenants": 0.0, "cadenceSeconds": 900.0,
		"anchorBucket": "audit", "publicKey": string(pem), "command": "audit-verifier verify --bucket audit --public-key anchor-key.pub.pem --origin test/audit"}, state())

	c.log.Append(audit.Event{TenantID: c.acme.TenantID}, audit.Event{TenantID: c.acme.TenantID}, audit.Event{TenantID: c.globex.TenantID})
	c.log.Publish()
	c.log.Publish()
	outbox := c.Env(t, "create-compliance-export").Outbox()
	for range 3 {
		require.NoError(t, outbox.InTenant(c.acme.Context, c.DB.App, c.acme.TenantID, func(tx pgx.Tx) error {
			return outbox.Record(c.acme.Context, tx, audit.Event{Type: audit.AgentCreated})
		}))
	}
	_, err = c.DB.Superuser(t).Exec(t.Context(), `update audit_outbox set state = 'quarantined' where event_id = (select event_id from audit_outbox limit 1)`)
	require.NoError(t, err)
	_, err = c.DB.Superuser(t).Exec(t.Context(), `update audit_ledger set beacon_at = now()`)
	require.NoError(t, err)
	now := state()
	require.Equal(t, []any{2.0, 1.0, 3.0, 2.0}, []any{now["pendingEvents"], now["quarantinedEvents"], now["events"], now["tenants"]})
	require.NotNil(t, now["beaconedAt"])
	last := now["lastAnchor"].(fields)
	require.Equal(t, "cadence-000000000002", last["cadenceId"])
	require.Equal(t, []any{7.0, 1.0}, []any{last["events"], last["tenants"]})
	require.Len(t, last["objectSha256"], 64)
}
