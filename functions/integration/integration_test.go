package integration_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/integration"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

func TestIntegrations(t *testing.T) {
	p := handlertest.New(t)
	acme, globex := desk{p.DB.World(t, "acme"), t, p}, desk{p.DB.World(t, "globex"), t, p}
	input := acme.generic("Orders")
	input["clientToken"] = "one"
	i := acme.made(input)
	require.True(t, ident.Valid(i.ID))
	require.Equal(t, "/integrations/"+i.ID+"/webhook", *i.URL)
	require.Equal(t, []any{"Orders", 600, true, true, acme.UserID, "{}"}, []any{i.Name, i.RateLimit, i.Enabled, i.HasSecret, i.CreatedBy, i.Config})
	require.Equal(t, i, acme.made(input), "a repeat")

	got, err := acme.get(tenant.Member, i.ID)
	require.Nil(t, err)
	require.Equal(t, i, got)
	changed, err := acme.update(tenant.Admin, i.ID, args{"name": "Shop", "secret": args{"signing": "another signing secret"}})
	require.Nil(t, err)
	require.Equal(t, "Shop", changed.Name)

	for _, d := range []struct {
		desk
		says *fault.Error
	}{{acme, fault.New(fault.Forbidden, "")}, {globex, fault.Missing("integration")}} {
		role := tenant.Owner
		if d.says.Type == fault.Forbidden {
			role = tenant.Member
			_, err := d.create(role, d.generic("Mine"))
			require.Equal(t, fault.Forbidden, err.Type)
		}
		_, err := d.update(role, i.ID, args{"name": "Mine"})
		require.Equal(t, d.says.Type, err.Type)
		_, err = d.remove(role, i.ID)
		require.Equal(t, d.says.Type, err.Type)
	}
	_, err = globex.get(tenant.Owner, i.ID)
	require.Equal(t, fault.Missing("integration"), err)
	_, err = acme.get(tenant.Owner, "no id")
	require.Equal(t, fault.Missing("integration"), err)
	listed, err := globex.list(args{})
	require.Nil(t, err)
	require.Empty(t, listed.Items)

	deleted, err := acme.remove(tenant.Admin, i.ID)
	require.Nil(t, err)
	require.Equal(t, changed, deleted)
	_, err = acme.get(tenant.Owner, i.ID)
	require.Equal(t, fault.Missing("integration"), err)
}

// No answer, row or log line has a secret: the answers are read here as they leave.
func TestNoAnswerHasASecret(t *testing.T) {
	p := handlertest.New(t)
	acme := desk{p.DB.World(t, "acme"), t, p}
	i := acme.made(acme.generic("Orders"))
	for _, c := range []struct {
		name        string
		constructor handler.Constructor
		a           args
	}{
		{"create-integration", functions.CreateIntegration, args{"input": acme.generic("Another")}},
		{"get-integration", functions.GetIntegration, args{"id": i.ID}},
		{"list-integrations", functions.ListIntegrations, args{}},
		{"update-integration", functions.UpdateIntegration, args{"id": i.ID, "input": args{"secret": args{"signing": signing + signing}}}},
		{"delete-integration", functions.DeleteIntegration, args{"id": i.ID}},
	} {
		answer, err := handlertest.Call[json.RawMessage](t, p, c.name, c.constructor, acme.as(tenant.Owner), c.a)
		require.Nil(t, err, c.name)
		require.NotContains(t, string(answer), "s3cr3t", c.name)
	}
	_, err := acme.create(tenant.Owner, args{"name": "Short", "provider": "generic", "agentId": acme.AgentID, "secret": args{"signing": "s3cr3t"}})
	require.Equal(t, fault.ValidationError, err.Type)
	require.NotContains(t, err.Message, "s3cr3t")
}

func TestListIntegrations(t *testing.T) {
	p := handlertest.New(t)
	acme, globex := desk{p.DB.World(t, "acme"), t, p}, desk{p.DB.World(t, "globex"), t, p}
	for _, name := range []string{"b", "B", "a-1", "a_1", "z"} {
		acme.made(acme.generic(name))
	}
	globex.made(globex.generic("theirs"))
	var names []string
	a := args{"limit": 2}
	for {
		found, err := acme.list(a)
		require.Nil(t, err)
		require.LessOrEqual(t, len(found.Items), 2)
		for _, i := range found.Items {
			names = append(names, i.Name)
		}
		if found.NextToken == nil {
			break
		}
		a["nextToken"] = *found.NextToken
		_, err = globex.list(a)
		require.Equal(t, fault.ValidationError, err.Type, "another tenant's token")
	}
	require.Equal(t, []string{"B", "a-1", "a_1", "b", "z"}, names)
}

func TestAnAddressIsWhole(t *testing.T) {
	p := handlertest.New(t)
	acme, globex := desk{p.DB.World(t, "acme"), t, p}, desk{p.DB.World(t, "globex"), t, p}
	mailbox := func(d desk, name string) args {
		return args{"name": name, "provider": "email", "agentId": d.AgentID, "config": `{"address": "Support"}`}
	}
	i := acme.made(mailbox(acme, "Mail"))
	require.Equal(t, "support@"+handlertest.MailDomain, *i.Address)
	require.Nil(t, i.URL)
	got, err := acme.get(tenant.Member, i.ID)
	require.Nil(t, err)
	require.Equal(t, i, got)
	listed, err := acme.list(args{})
	require.Nil(t, err)
	require.Equal(t, i, listed.Items[0])
	changed, err := acme.update(tenant.Owner, i.ID, args{"config": `{"address": "help"}`})
	require.Nil(t, err)
	require.Equal(t, "help@"+handlertest.MailDomain, *changed.Address)
	changed, err = acme.update(tenant.Owner, i.ID, args{"config": `{"address": "support"}`})
	require.Nil(t, err)

	_, own := acme.create(tenant.Owner, mailbox(acme, "Mail again"))
	_, foreign := globex.create(tenant.Owner, mailbox(globex, "Mail"))
	require.Equal(t, fault.Invalid("config.address support is taken"), own)
	require.Equal(t, own, foreign)
	deleted, err := acme.remove(tenant.Owner, i.ID)
	require.Nil(t, err)
	require.Equal(t, changed, deleted)
	globex.made(mailbox(globex, "Mail"))
}

func TestNoMailboxWhereNoMailIsReceived(t *testing.T) {
	p := handlertest.New(t)
	acme := desk{p.DB.World(t, "acme"), t, p}
	env := handler.NewEnv(manifest.Row{Needs: []string{"db", "secret:integrations", "egress", "mail-in"}}, &handler.Ports{DB: func() *postgres.DB { return p.DB.App },
		IntegrationSecrets: p.IntegrationSecrets})
	event, err := json.Marshal(args{"arguments": args{"input": args{"name": "Mail", "provider": "email", "agentId": acme.AgentID, "config": `{"address": "support"}`}},
		"claims": acme.as(tenant.Owner)})
	require.NoError(t, err)
	answer, err := functions.CreateIntegration(env).Invoke(t.Context(), event)
	require.NoError(t, err)
	require.Contains(t, string(answer), "which receives no mail")
}
