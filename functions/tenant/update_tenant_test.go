package tenant_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/tenant"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/user"
)

func update(t *testing.T, p *handlertest.Platform, by tenant.Claims, id string, input args) (user.Tenant, *fault.Error) {
	t.Helper()
	return handlertest.Call[user.Tenant](t, p, "update-tenant", functions.UpdateTenant, by, args{"id": id, "input": input})
}

func TestUpdateTenant(t *testing.T) {
	p := handlertest.New(t, operator)
	made, err := create(t, p, stranger, "initech", "Initech", "peter@initech.test")
	require.Nil(t, err)
	require.Equal(t, 50, made.TurnsAtOnce)
	for _, c := range []struct {
		change args
		name   string
		turns  int
	}{
		{args{"turnsAtOnce": 400}, "Initech", 400},
		{args{"name": "Initrode"}, "Initrode", 400},
		{args{}, "Initrode", 400},
		{args{"name": "I", "turnsAtOnce": 1}, "I", 1},
		{args{"turnsAtOnce": 10_000}, "I", 10_000},
	} {
		got, err := update(t, p, stranger, made.ID, c.change)
		require.Nil(t, err)
		require.Equal(t, user.Tenant{ID: made.ID, Slug: "initech", Name: c.name, TurnsAtOnce: c.turns, CreatedAt: made.CreatedAt}, got)
	}
	for _, change := range []args{{"turnsAtOnce": 0}, {"turnsAtOnce": -1}, {"turnsAtOnce": 10_001}, {"name": ""}, {"name": string(make([]byte, 201))}} {
		_, err := update(t, p, stranger, made.ID, change)
		require.NotNil(t, err)
		require.Equal(t, fault.ValidationError, err.Type, change)
	}
	for _, id := range []string{ident.New(), "", "initech"} {
		_, err := update(t, p, stranger, id, args{"turnsAtOnce": 2})
		require.Equal(t, fault.Missing("tenant"), err, id)
	}
	owner := tenant.Claims{"custom:tenant_id": made.ID, "custom:user_id": ident.New(), "custom:role": "owner", "email": "peter@initech.test", "email_verified": true}
	_, err = update(t, p, owner, made.ID, args{"turnsAtOnce": 2})
	require.NotNil(t, err)
	require.Equal(t, fault.Forbidden, err.Type)
}
