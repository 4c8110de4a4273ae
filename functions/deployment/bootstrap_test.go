package deployment_test

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/deployment"
	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const acme = `{"slug": "acme", "name": "Acme Inc.", "ownerEmail": "Ada@Acme.test"}`

type answer struct {
	Made     bool
	TenantID string
	Message  string
}

func bootstrap(t *testing.T, p *handlertest.Platform, event string) (a answer, err error) {
	t.Helper()
	raw, err := functions.Bootstrap(p.Env(t, "bootstrap")).Invoke(t.Context(), []byte(event))
	if err == nil {
		require.NoError(t, json.Unmarshal(raw, &a))
	}
	return a, err
}

// rows counts what a tenant is made of.
func rows(t *testing.T, p *handlertest.Platform) (n int) {
	t.Helper()
	require.NoError(t, p.DB.Superuser(t).QueryRow(t.Context(), `select (select count(*) from tenants) + (select count(*) from users) + (select count(*) from agents)
		+ (select count(*) from agent_templates) + (select count(*) from spaces) + (select count(*) from audit_outbox)`).Scan(&n))
	return n
}

func TestBootstrap(t *testing.T) {
	p := handlertest.New(t)
	made, err := bootstrap(t, p, acme)
	require.NoError(t, err)
	require.True(t, ident.Valid(made.TenantID))
	require.Equal(t, answer{true, made.TenantID, "the tenant acme was made, and its owner ada@acme.test is invited"}, made)
	require.Equal(t, []string{"invite ada@acme.test"}, p.Directory().Told())
	require.Equal(t, []string{"drain-outbox"}, p.Invoked())

	var found []string
	require.NoError(t, p.DB.Superuser(t).QueryRow(t.Context(), `select array[t.id::text, t.slug, t.name, u.email, u.role, m.model_id, a.status, (s.default_agent_id = a.id)::text]
		from tenants t join users u on u.tenant_id = t.id join agents a on a.tenant_id = t.id join agent_templates m on m.id = a.template_id join spaces s on s.tenant_id = t.id`).Scan(&found))
	require.Equal(t, []string{made.TenantID, "acme", "Acme Inc.", "ada@acme.test", "owner", handlertest.Model, "active", "true"}, found)

	// The platform did it.
	var types []audit.Type
	for _, e := range p.Recorded(t) {
		types = append(types, e.Type)
		require.Equal(t, []string{made.TenantID, "platform", "system", "system"}, []string{e.TenantID, e.Actor, string(e.ActorType), string(e.Source)})
	}
	require.Equal(t, []audit.Type{audit.AgentCreated, audit.UserInvited, audit.UserCreated}, types)
	require.Equal(t, map[string]any{"email": "ada@acme.test", "role": "owner", "invitedBy": "platform"}, p.Recorded(t)[1].Payload)

	// Each deployment asks again.
	before := rows(t, p)
	for event, want := range map[string]answer{
		acme: {false, made.TenantID, "the tenant acme is there already: nothing was changed"},
		`{"slug": "acme", "name": "Another", "ownerEmail": "eve@acme.test"}`: {false, made.TenantID, "the tenant acme is there already: nothing was changed"},
		`{"slug": "globex", "name": "Globex", "ownerEmail": "hank@globex.test"}`: {false, "",
			"there is a tenant already (acme), so globex is not the first one: nothing was changed. A platform operator makes further tenants, by createTenant"},
	} {
		again, err := bootstrap(t, p, event)
		require.NoError(t, err)
		require.Equal(t, want, again)
	}
	require.Equal(t, before, rows(t, p))
	require.Len(t, p.Directory().Told(), 1)
}

func TestBootstrapFindsItsTenantAmongOthers(t *testing.T) {
	p := handlertest.New(t)
	p.DB.World(t, "aaa")
	w := p.DB.World(t, "acme")
	a, err := bootstrap(t, p, acme)
	require.NoError(t, err)
	require.Equal(t, answer{false, w.TenantID, "the tenant acme is there already: nothing was changed"}, a)
}

func TestBootstrapOfNobody(t *testing.T) {
	p := handlertest.New(t)
	for _, event := range []string{`null`, `{}`, ` {} `} {
		a, err := bootstrap(t, p, event)
		require.NoError(t, err)
		require.False(t, a.Made)
		require.Contains(t, a.Message, `no first tenant is asked for: nothing was done. To have one made, set first_tenant = { slug = "acme", name = "Acme Inc.", owner_email = "ada@acme.example" }`)
	}
	require.Zero(t, rows(t, p))
}

func TestBootstrapSaysWhatIsWrong(t *testing.T) {
	p := handlertest.New(t)
	for event, want := range map[string]string{
		`{"slug": "Acme", "name": "Acme", "ownerEmail": "ada@acme.test"}`: "first_tenant cannot be made: slug must be 1 to 63 lower-case letters",
		`{"slug": "acme", "name": "", "ownerEmail": "ada@acme.test"}`:     "first_tenant cannot be made: name ",
		`{"slug": "acme", "name": "Acme", "ownerEmail": "ada"}`:           "first_tenant cannot be made: owner_email is not an e-mail address",
		`{"slug": "acme", "name": "Acme"}`:                                "first_tenant cannot be made: owner_email ",
		`{"slug": "acme", "name": "Acme", "owner": "ada@acme.test"}`:      `first_tenant is not what it should be (json: unknown field "owner")`,
		`"acme"`: "first_tenant is not what it should be (",
		`[]`:     "first_tenant is not what it should be (",
	} {
		_, err := bootstrap(t, p, event)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, `Write it so: first_tenant = { slug = "acme", name = "Acme Inc.", owner_email = "ada@acme.example" }`)
	}
	require.Zero(t, rows(t, p))
	require.Empty(t, p.Directory().Told())
}

// Whatever fails, and wherever it dies, the next deployment makes the tenant.
func TestTheFirstTenantIsWholeOrNotThere(t *testing.T) {
	p := handlertest.New(t)
	super := p.DB.Superuser(t)
	exec := func(sql string) {
		t.Helper()
		_, err := super.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	fails := func() {
		t.Helper()
		_, err := bootstrap(t, p, acme)
		require.ErrorContains(t, err, "the first tenant was not made, and nothing of it is in the database: ")
		require.ErrorContains(t, err, "Deploy again when that is mended")
		require.Zero(t, rows(t, p))
	}
	repair := p.BreakOutbox(t)
	fails()
	repair()
	p.Directory().Fail = errors.New("the pool is away")
	fails()
	p.Directory().Fail = nil
	require.Empty(t, p.Directory().Told())

	// After the invitation and before the commit.
	exec(`create function crash() returns trigger language plpgsql as $$ begin perform pg_terminate_backend(pg_backend_pid()); return null; end $$;
		create constraint trigger crash after insert on tenants deferrable initially deferred for each row execute function crash()`)
	fails()
	require.Equal(t, []string{"invite ada@acme.test"}, p.Directory().Told())
	exec(`drop trigger crash on tenants`)

	a, err := bootstrap(t, p, acme)
	require.NoError(t, err)
	require.True(t, a.Made)
	require.Equal(t, []string{"invite ada@acme.test", "invite ada@acme.test"}, p.Directory().Told())
}

func TestOneOfManyBootstrapsMakesTheFirstTenant(t *testing.T) {
	p := handlertest.New(t)
	events := []string{acme, `{"slug": "globex", "name": "Globex", "ownerEmail": "hank@globex.test"}`}
	function := functions.Bootstrap(p.Env(t, "bootstrap"))
	start := make(chan struct{})
	var all sync.WaitGroup
	answers := make([]answer, 6)
	errs := make([]error, len(answers))
	for i := range answers {
		all.Go(func() {
			<-start
			raw, err := function.Invoke(t.Context(), []byte(events[i%len(events)]))
			if err == nil {
				err = json.Unmarshal(raw, &answers[i])
			}
			errs[i] = err
		})
	}
	close(start)
	all.Wait()
	made := 0
	for i, a := range answers {
		require.NoError(t, errs[i])
		if a.Made {
			made++
		}
	}
	require.Equal(t, 1, made)
	require.Len(t, p.Directory().Told(), 1)
	require.Len(t, p.Recorded(t), 3)
}
