package ledger_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/functions/ledger"
	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/outbox"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/local/bucket"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// What the schedule calls, one after the other: an act that was recorded is in a chain, then under an anchor, and all is well.
func TestFromOutboxToAnchor(t *testing.T) {
	server, err := bucket.Start(t.Context(), bucket.Config{Dir: t.TempDir(), RootKey: "root", RootSecret: "root-secret", ReaderKey: "reader", ReaderSecret: "reader-secret",
		Buckets: []bucket.Bucket{{Name: "audit", ObjectLock: true, Versioning: true}}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })
	store := object.New(object.Config{Region: "us-east-1", Endpoint: server.Endpoint(), AccessKey: "root", Secret: "root-secret", PathStyle: true})
	p := handlertest.New(t).WithStore(store.In("audit"), nil)
	tenant := p.DB.Tenant(t, "acme")
	box := outbox.New(outbox.Config{Key: []byte(handlertest.EmissionKey)})
	require.NoError(t, box.InTenant(t.Context(), p.DB.App, tenant, func(tx pgx.Tx) error {
		return box.Record(t.Context(), tx, audit.Event{TenantID: tenant, Actor: "tester", ActorType: audit.ActorSystem, Source: audit.SourceSystem, Type: audit.AgentDeleted,
			Payload: map[string]any{"agentId": "a", "reason": "test"}})
	}))
	for _, call := range []func(context.Context, []byte) ([]byte, error){
		ledger.DrainOutbox(p.Env(t, "drain-outbox")).Invoke, ledger.PublishAnchor(p.Env(t, "publish-anchor")).Invoke, ledger.WatchLedger(p.Env(t, "watch-ledger")).Invoke,
	} {
		_, err := call(t.Context(), []byte(`{"source":"aws.events"}`))
		require.NoError(t, err)
	}
	var events, tenants int
	require.NoError(t, p.DB.Superuser(t).QueryRow(t.Context(), `select events, tenants from audit_anchors where anchored_at is not null`).Scan(&events, &tenants))
	require.Equal(t, []int{1, 1}, []int{events, tenants})
}
