package compliance_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/functions/compliance"
	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/fault"
)

type eventPage struct {
	Items     []fields `json:"items"`
	NextToken *string  `json:"nextToken"`
}

func (p eventPage) ids() (ids []string) {
	for _, item := range p.Items {
		ids = append(ids, item["eventId"].(string))
	}
	return ids
}

func (c *console) events(args fields) (eventPage, *fault.Error) {
	return ask[eventPage](c, "compliance-events", compliance.ComplianceEvents, args)
}

func TestComplianceEvents(t *testing.T) {
	c := newConsole(t)
	const day = 24 * time.Hour
	e := c.log.Append(
		audit.Event{TenantID: c.acme.TenantID, OccurredAt: ago(8 * day)},
		audit.Event{TenantID: c.acme.TenantID, OccurredAt: ago(3 * day), Actor: "ada", ActorType: audit.ActorUser},
		audit.Event{TenantID: c.globex.TenantID, OccurredAt: ago(day), Type: audit.AgentDeleted, Payload: map[string]any{"agentId": "x"}},
		audit.Event{TenantID: c.acme.TenantID, OccurredAt: ago(2 * day)},
		audit.Event{TenantID: c.globex.TenantID, OccurredAt: ago(0)},
	)
	list := func(filter fields) []string {
		p, refused := c.events(fields{"filter": filter})
		require.Nil(t, refused)
		return p.ids()
	}
	require.Equal(t, []string{e[4].EventID, e[2].EventID, e[3].EventID, e[1].EventID}, list(nil), "seven days, newest first")
	require.Equal(t, []string{e[3].EventID, e[1].EventID}, list(fields{"tenantId": c.acme.TenantID}))
	require.Equal(t, []string{e[2].EventID}, list(fields{"eventType": "agent.deleted"}))
	require.Equal(t, []string{e[1].EventID}, list(fields{"actor": "ada", "eventType": nil}))
	require.Equal(t, []string{e[3].EventID, e[1].EventID, e[0].EventID}, list(fields{"tenantId": c.acme.TenantID, "from": ago(30 * day)}))
	require.Equal(t, []string{e[0].EventID}, list(fields{"to": ago(7 * day)}), "seven days before to")
	require.Empty(t, list(fields{"eventType": "no.such"}))

	// Page by page; the token is good for this list only.
	var paged []string
	args := fields{"limit": 1, "filter": fields{"from": ago(30 * day)}}
	for {
		p, refused := c.events(args)
		require.Nil(t, refused)
		paged = append(paged, p.ids()...)
		if p.NextToken == nil {
			break
		}
		require.Len(t, p.Items, 1)
		args["nextToken"] = *p.NextToken
	}
	require.Equal(t, []string{e[4].EventID, e[2].EventID, e[3].EventID, e[1].EventID, e[0].EventID}, paged)
	p, refused := c.events(fields{"limit": 1})
	require.Nil(t, refused)
	token := *p.NextToken
	p, refused = c.events(fields{"limit": 100, "nextToken": token})
	require.Nil(t, refused)
	require.Equal(t, []string{e[2].EventID, e[3].EventID, e[1].EventID}, p.ids())
	for name, args := range map[string]fields{
		"another filter": {"nextToken": token, "filter": fields{"actor": "ada"}},
		"forged":         {"nextToken": token[:len(token)-2] + "xx"},
		"limit 0":        {"limit": 0},
		"limit 101":      {"limit": 101},
		"tenant":         {"filter": fields{"tenantId": "acme"}},
		"NUL":            {"filter": fields{"actor": "a\x00"}},
		"times":          {"filter": fields{"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}},
	} {
		_, refused := c.events(args)
		require.NotNil(t, refused, name)
		require.Equal(t, fault.ValidationError, refused.Type, name)
	}
}

// TestPagesOfLargePayloads: what is too large is shown by its beginning, and a page that would be too large for Lambda ends early.
func TestPagesOfLargePayloads(t *testing.T) {
	c := newConsole(t)
	const n = 30
	events := []audit.Event{large(c.acme.TenantID, ago(0))}
	for range n {
		events = append(events, audit.Event{TenantID: c.acme.TenantID, OccurredAt: ago(time.Hour), Type: audit.AgentSkillsChanged,
			Payload: map[string]any{"agentId": "x", "addedSkills": listOf(60, strings.Repeat("x", 4000))}})
	}
	c.log.Append(events...)
	seen := map[string]bool{}
	args, pages := fields{}, 0
	for {
		p, refused := c.events(args)
		require.Nil(t, refused)
		pages++
		for _, item := range p.Items {
			id := item["eventId"].(string)
			require.False(t, seen[id])
			seen[id] = true
		}
		if pages == 1 {
			require.Nil(t, p.Items[0]["payload"])
			require.NotNil(t, p.Items[0]["payloadPreview"])
			require.Nil(t, p.Items[0]["payloadUrl"], "only complianceEvent makes one")
		}
		if p.NextToken == nil {
			break
		}
		args["nextToken"] = *p.NextToken
	}
	require.Len(t, seen, n+1)
	require.Equal(t, 2, pages, "7 MB of payloads")
}
