package compliance_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/functions/compliance"
	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/trail/trailtest"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/local/bucket"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// operator is one without a tenant.
var operator = tenant.Claims{"email": "Ops@acme.test", "email_verified": true}

// console is the compliance console of two tenants.
type console struct {
	*handlertest.Platform
	t            *testing.T
	log          *trailtest.Log
	acme, globex pgtest.World
}

// newConsole has no buckets; withBuckets gives it some.
func newConsole(t *testing.T) *console {
	p := handlertest.New(t, "ops@acme.test")
	return &console{Platform: p, t: t, log: trailtest.New(t, p.DB), acme: p.DB.World(t, "acme"), globex: p.DB.World(t, "globex")}
}

func (c *console) withBuckets() *console {
	server, err := bucket.Start(c.t.Context(), bucket.Config{Dir: c.t.TempDir(), RootKey: "root", RootSecret: "root-secret", ReaderKey: "reader", ReaderSecret: "reader-secret",
		Buckets: []bucket.Bucket{{Name: "audit", ObjectLock: true}, {Name: "exports"}}})
	require.NoError(c.t, err)
	c.t.Cleanup(func() { require.NoError(c.t, server.Stop(context.Background())) })
	store := object.New(object.Config{Region: "us-east-1", Endpoint: server.Endpoint(), AccessKey: "root", Secret: "root-secret", PathStyle: true})
	c.WithStore(store.In("audit"), store.In("exports"))
	return c
}

// ask calls a function as the operator.
func ask[R any](c *console, name string, constructor handler.Constructor, args any) (R, *fault.Error) {
	c.t.Helper()
	return handlertest.Call[R](c.t, c.Platform, name, constructor, operator, args)
}

func must[R any](c *console, name string, constructor handler.Constructor, args any) R {
	c.t.Helper()
	result, refused := ask[R](c, name, constructor, args)
	require.Nil(c.t, refused)
	return result
}

// ago is an instant before now, to the microsecond.
func ago(d time.Duration) ident.Time {
	return ident.Time{Time: ident.Now().Add(-d)}
}

func listOf(n int, text string) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = text
	}
	return list
}

// large is an event whose payload is larger than 256 KB.
func large(tenantID string, at ident.Time) audit.Event {
	text := make([]rune, 1300)
	for i := range text {
		text[i] = 'é' // two bytes: the preview has to be cut between characters
	}
	return audit.Event{TenantID: tenantID, OccurredAt: at, Type: audit.AgentSkillsChanged, Payload: map[string]any{"agentId": "x", "addedSkills": listOf(110, string(text))}}
}

type fields = map[string]any

// TestOperatorsOnly: nobody else is answered, whatever it asks.
func TestOperatorsOnly(t *testing.T) {
	c := newConsole(t).withBuckets()
	e := c.log.Append(audit.Event{TenantID: c.acme.TenantID})[0]
	for name, f := range map[string]struct {
		constructor handler.Constructor
		args        fields
	}{
		"compliance-events":        {compliance.ComplianceEvents, fields{}},
		"compliance-event":         {compliance.ComplianceEvent, fields{"eventId": e.EventID}},
		"compliance-event-by-hash": {compliance.ComplianceEventByHash, fields{"eventHash": e.Hash}},
		"compliance-chain":         {compliance.ComplianceChain, fields{"eventHash": e.Hash}},
		"compliance-verification":  {compliance.ComplianceVerification, fields{}},
		"compliance-proof":         {compliance.ComplianceProof, fields{"eventId": e.EventID}},
		"create-compliance-export": {compliance.CreateComplianceExport, fields{"input": fields{"filter": fields{"tenantId": c.acme.TenantID}}}},
		"compliance-exports":       {compliance.ComplianceExports, fields{}},
		"compliance-export-link":   {compliance.ComplianceExportLink, fields{"jobId": ident.New()}},
	} {
		for who, claims := range map[string]tenant.Claims{
			"an owner":   handlertest.Claims(c.acme, tenant.Owner),
			"unverified": {"email": "ops@acme.test", "email_verified": false},
			"nobody":     {},
		} {
			_, refused := handlertest.Call[json.RawMessage](t, c.Platform, name, f.constructor, claims, f.args)
			require.NotNil(t, refused, "%s: %s", name, who)
			require.Equal(t, fault.Forbidden, refused.Type, "%s: %s", name, who)
		}
	}
	require.Empty(t, c.Invoked())
}
