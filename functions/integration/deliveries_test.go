package integration_test

import (
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/integration"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// log has deliveries come to an integration.
func (d desk) log(i integration.Integration, outcomes ...integration.Outcome) {
	d.t.Helper()
	var b pgx.Batch
	for _, outcome := range outcomes {
		delivery := integration.Arrived(d.TenantID, i.Provider, []byte(`{"message": "Hello"}`))
		delivery.IntegrationID, delivery.Outcome = &i.ID, outcome
		integration.Log(&b, delivery)
	}
	require.NoError(d.t, d.p.DB.App.Once(d.t.Context(), d.TenantID, &b))
}

func TestListDeliveries(t *testing.T) {
	p := handlertest.New(t)
	acme, globex := desk{p.DB.World(t, "acme"), t, p}, desk{p.DB.World(t, "globex"), t, p}
	orders, alerts, theirs := acme.made(acme.generic("Orders")), acme.made(acme.generic("Alerts")), globex.made(globex.generic("Theirs"))
	acme.log(orders, integration.OK, integration.OK, integration.Unverified)
	acme.log(alerts, integration.OK)
	globex.log(theirs, integration.OK)

	_, err := acme.deliveries(tenant.Member, args{})
	require.Equal(t, fault.Forbidden, err.Type)
	all, err := acme.deliveries(tenant.Admin, args{"filter": nil})
	require.Nil(t, err)
	require.Len(t, all.Items, 4)
	require.Equal(t, 20, all.Items[0].Size)
	require.Len(t, all.Items[0].SHA256, 64)
	for filter, n := range map[*args]int{{"integrationId": orders.ID}: 3, {"integrationId": alerts.ID}: 1, {"integrationId": theirs.ID}: 0, {"outcome": "ok"}: 3,
		{"integrationId": orders.ID, "outcome": "unverified"}: 1, {"webhookId": orders.ID}: 0, {"webhookId": "no id"}: 0} {
		found, err := acme.deliveries(tenant.Owner, args{"filter": filter})
		require.Nil(t, err)
		require.Len(t, found.Items, n, "%v", *filter)
	}
	first, err := acme.deliveries(tenant.Owner, args{"filter": args{"integrationId": orders.ID}, "limit": 2})
	require.Nil(t, err)
	require.Len(t, first.Items, 2)
	rest, err := acme.deliveries(tenant.Owner, args{"filter": args{"integrationId": orders.ID}, "limit": 2, "nextToken": first.NextToken})
	require.Nil(t, err)
	require.Len(t, rest.Items, 1)
	require.Nil(t, rest.NextToken)
	_, err = acme.deliveries(tenant.Owner, args{"limit": 2, "nextToken": first.NextToken})
	require.Equal(t, fault.ValidationError, err.Type, "the token of another list")
	_, err = globex.deliveries(tenant.Owner, args{"filter": args{"integrationId": orders.ID}, "limit": 2, "nextToken": first.NextToken})
	require.Equal(t, fault.ValidationError, err.Type, "another tenant's")
}

func TestPruneDeliveries(t *testing.T) {
	p := handlertest.New(t)
	acme := desk{p.DB.World(t, "acme"), t, p}
	i := acme.made(acme.generic("Orders"))
	acme.log(i, integration.OK, integration.OK)
	_, err := p.DB.Superuser(t).Exec(t.Context(), `update deliveries set received_at = received_at - interval '91 days' where id = (select min(id::text)::uuid from deliveries)`)
	require.NoError(t, err)
	event, err := json.Marshal(map[string]any{"time": "2026-01-01T00:00:00Z"})
	require.NoError(t, err)
	_, err = functions.PruneDeliveries(p.Env(t, "prune-deliveries")).Invoke(t.Context(), event)
	require.NoError(t, err)
	left, fails := acme.deliveries(tenant.Owner, args{})
	require.Nil(t, fails)
	require.Len(t, left.Items, 1)
	_, fails = acme.get(tenant.Member, i.ID)
	require.Nil(t, fails)
}
