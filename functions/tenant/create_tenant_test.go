package tenant_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	agents "github.com/agentplatform/agentplatform/functions/agent"
	functions "github.com/agentplatform/agentplatform/functions/tenant"
	threads "github.com/agentplatform/agentplatform/functions/thread"
	users "github.com/agentplatform/agentplatform/functions/user"
	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/user"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type args = map[string]any

const operator = "ops@platform.test"

// stranger is an operator who belongs to no tenant.
var stranger = tenant.Claims{"email": "Ops@Platform.test", "email_verified": true}

func create(t *testing.T, p *handlertest.Platform, by tenant.Claims, slug, name, owner string) (user.Tenant, *fault.Error) {
	t.Helper()
	return handlertest.Call[user.Tenant](t, p, "create-tenant", functions.CreateTenant, by, args{"input": args{"slug": slug, "name": name, "ownerEmail": owner}})
}

func TestCreateTenant(t *testing.T) {
	p := handlertest.New(t, operator)
	made, err := create(t, p, stranger, "initech", "Initech", "Peter@Initech.test")
	require.Nil(t, err)
	require.True(t, ident.Valid(made.ID))
	require.Equal(t, user.Tenant{ID: made.ID, Slug: "initech", Name: "Initech", TurnsAtOnce: 50, CreatedAt: made.CreatedAt}, made)
	require.Equal(t, []string{"invite peter@initech.test"}, p.Directory().Told())

	// Its owner finds a tenant that works.
	recorded := p.Recorded(t)
	require.Len(t, recorded, 3)
	owner := tenant.Claims{"custom:tenant_id": made.ID, "custom:user_id": recorded[2].ResourceID, "custom:role": "owner", "email": "peter@initech.test", "email_verified": true}
	list, err := handlertest.Call[page.Page[user.User]](t, p, "list-users", users.ListUsers, owner, args{})
	require.Nil(t, err)
	require.Len(t, list.Items, 1)
	peter := list.Items[0]
	require.Equal(t, []any{"peter@initech.test", tenant.Owner, user.Active}, []any{peter.Email, peter.Role, peter.Status})
	th, err := handlertest.Call[thread.Thread](t, p, "create-thread", threads.CreateThread, owner, args{"input": args{}})
	require.Nil(t, err)
	a, err := handlertest.Call[agent.Agent](t, p, "get-agent", agents.GetAgent, owner, args{"id": th.AgentID})
	require.Nil(t, err)
	require.Equal(t, []any{"Assistant", agent.Active}, []any{a.Name, a.Status})
	templates, err := handlertest.Call[[]*agent.Template](t, p, "agent-template", agents.AgentTemplate, owner, args{}, a)
	require.Nil(t, err)
	require.Equal(t, handlertest.Model, *templates[0].ModelID)

	// It is in the new tenant's log, done by the operator.
	require.Equal(t, audit.AgentCreated, recorded[0].Type)
	require.Equal(t, args{"agentId": a.ID, "name": "Assistant", "templateId": a.TemplateID}, recorded[0].Payload)
	require.Equal(t, audit.UserInvited, recorded[1].Type)
	require.Equal(t, args{"email": "peter@initech.test", "role": "owner", "invitedBy": operator}, recorded[1].Payload)
	require.Equal(t, audit.UserCreated, recorded[2].Type)
	require.Equal(t, args{"userId": peter.ID, "email": "peter@initech.test", "role": "owner"}, recorded[2].Payload)
	for _, e := range recorded {
		require.Equal(t, []string{made.ID, operator, "user", "graphql", "test"}, []string{e.TenantID, e.Actor, string(e.ActorType), string(e.Source), e.RequestID})
	}
}

func TestAnOperatorWithATenantActsByItsID(t *testing.T) {
	p := handlertest.New(t, operator)
	w := p.DB.World(t, "acme")
	by := handlertest.Claims(w, tenant.Member)
	by["email"] = operator
	made, err := create(t, p, by, "initech", "Initech", "peter@initech.test")
	require.Nil(t, err)
	for _, e := range p.Recorded(t) {
		require.Equal(t, []string{made.ID, w.UserID}, []string{e.TenantID, e.Actor})
	}
	require.Equal(t, w.UserID, p.Recorded(t)[1].Payload["invitedBy"])
}

func TestTenantsThatAreRefused(t *testing.T) {
	p := handlertest.New(t, operator)
	w := p.DB.World(t, "acme")
	for name, by := range map[string]tenant.Claims{
		"an owner":   handlertest.Claims(w, tenant.Owner),
		"unverified": {"email": operator, "email_verified": false},
	} {
		_, err := create(t, p, by, "initech", "Initech", "peter@initech.test")
		require.NotNil(t, err, name)
		require.Equal(t, fault.Forbidden, err.Type, name)
	}
	for name, input := range map[string][3]string{
		"slug taken":    {"acme", "Acme", "peter@initech.test"},
		"no slug":       {"", "Initech", "peter@initech.test"},
		"upper case":    {"Initech", "Initech", "peter@initech.test"},
		"hyphen":        {"-initech", "Initech", "peter@initech.test"},
		"line end":      {"initech\n", "Initech", "peter@initech.test"},
		"long slug":     {strings.Repeat("x", 64), "Initech", "peter@initech.test"},
		"no name":       {"initech", " ", "peter@initech.test"},
		"long name":     {"initech", strings.Repeat("x", 201), "peter@initech.test"},
		"no address":    {"initech", "Initech", "peter"},
		"address taken": {"initech", "Initech", "Owner@acme.test"},
	} {
		_, err := create(t, p, stranger, input[0], input[1], input[2])
		require.NotNil(t, err, name)
		require.Equal(t, fault.ValidationError, err.Type, name)
	}
	require.Empty(t, p.Recorded(t))
	require.Empty(t, p.Directory().Told())
}

func TestATenantIsWholeOrNotThere(t *testing.T) {
	p := handlertest.New(t, operator)
	attempt := func() *fault.Error {
		_, err := create(t, p, stranger, "initech", "Initech", "peter@initech.test")
		return err
	}
	nothing := func() {
		t.Helper()
		var rows int
		require.NoError(t, p.DB.Superuser(t).QueryRow(t.Context(), `select (select count(*) from tenants) + (select count(*) from users) + (select count(*) from agents)
			+ (select count(*) from agent_templates) + (select count(*) from spaces) + (select count(*) from audit_outbox)`).Scan(&rows))
		require.Zero(t, rows)
	}
	repair := p.BreakOutbox(t)
	require.Equal(t, fault.InternalError, attempt().Type)
	require.Empty(t, p.Directory().Told())
	nothing()
	repair()
	p.Directory().Fail = errors.New("the pool is away")
	require.Equal(t, fault.InternalError, attempt().Type)
	nothing()
	p.Directory().Fail = nil
	require.Nil(t, attempt())
}
