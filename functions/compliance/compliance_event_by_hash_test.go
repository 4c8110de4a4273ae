package compliance_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/functions/compliance"
	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

func TestComplianceEventByHash(t *testing.T) {
	c := newConsole(t)
	thread, agent := ident.New(), ident.New()
	chain := c.log.Append(audit.Event{TenantID: c.globex.TenantID}, audit.Event{TenantID: c.globex.TenantID, Actor: "an agent", ActorType: audit.ActorAgent, Source: audit.SourceRuntime,
		Type: audit.AgentCreated, ResourceType: "agent", ResourceID: "r", ThreadID: thread, AgentID: agent, RequestID: "req",
		Payload: map[string]any{"agentId": "x", "name": "Ada", "password": "hunter2"}})
	byHash := func(hash string) (fields, *fault.Error) {
		return ask[fields](c, "compliance-event-by-hash", compliance.ComplianceEventByHash, fields{"eventHash": hash})
	}
	e := chain[1]
	got, refused := byHash(e.Hash)
	require.Nil(t, refused)
	require.Equal(t, fields{"eventId": e.EventID, "tenantId": c.globex.TenantID, "occurredAt": e.OccurredAt.String(), "recordedAt": e.RecordedAt.String(), "actor": "an agent",
		"actorType": "agent", "source": "runtime", "eventType": "agent.created", "eventHash": e.Hash, "prevHash": chain[0].Hash, "chainPosition": 2.0,
		"anchor": fields{"status": "PENDING", "cadenceId": nil}, "resourceType": "agent", "resourceId": "r", "threadUUID": thread, "agentId": agent, "requestId": "req",
		"redactedFields": []any{"password"}, "payload": `{"agentId":"x","name":"Ada"}`, "payloadBytes": 28.0, "payloadPreview": nil, "payloadUrl": nil}, got)

	first, refused := byHash(chain[0].Hash)
	require.Nil(t, refused)
	require.Equal(t, "GENESIS", first["prevHash"])
	require.Equal(t, []any{}, first["redactedFields"])
	for _, name := range []string{"resourceType", "resourceId", "threadUUID", "agentId", "requestId"} {
		require.Nil(t, first[name], name)
	}

	c.log.Publish()
	later := c.log.Append(audit.Event{TenantID: c.globex.TenantID})[0]
	got, refused = byHash(e.Hash)
	require.Nil(t, refused)
	require.Equal(t, fields{"status": "ANCHORED", "cadenceId": "cadence-000000000001"}, got["anchor"])
	got, refused = byHash(later.Hash)
	require.Nil(t, refused)
	require.Equal(t, fields{"status": "PENDING", "cadenceId": nil}, got["anchor"])

	for _, hash := range []string{strings.Repeat("00", 32), strings.ToUpper(e.Hash), "", "x"} {
		_, refused = byHash(hash)
		require.Equal(t, fault.Missing("event"), refused)
	}

	// What does not have its hash is not shown.
	c.log.Tamper(`update audit_events set canonical = replace(canonical, 'Ada', 'Eve') where event_id = $1`, e.EventID)
	_, refused = byHash(e.Hash)
	require.Equal(t, fault.InternalError, refused.Type)
	require.Contains(t, refused.Message, e.EventID)
}
