package integration_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/integration"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type args = map[string]any

const signing = "a signing secret, s3cr3t"

// desk calls the functions on integrations for one tenant.
type desk struct {
	pgtest.World
	t testing.TB
	p *handlertest.Platform
}

func (d desk) as(role tenant.Role) tenant.Claims { return handlertest.Claims(d.World, role) }

func (d desk) call(name string, constructor handler.Constructor, by tenant.Role, a args) (integration.Integration, *fault.Error) {
	d.t.Helper()
	return handlertest.Call[integration.Integration](d.t, d.p, name, constructor, d.as(by), a)
}

func (d desk) create(by tenant.Role, input args) (integration.Integration, *fault.Error) {
	return d.call("create-integration", functions.CreateIntegration, by, args{"input": input})
}

func (d desk) update(by tenant.Role, id string, input args) (integration.Integration, *fault.Error) {
	return d.call("update-integration", functions.UpdateIntegration, by, args{"id": id, "input": input})
}

func (d desk) remove(by tenant.Role, id string) (integration.Integration, *fault.Error) {
	return d.call("delete-integration", functions.DeleteIntegration, by, args{"id": id})
}

func (d desk) get(by tenant.Role, id string) (integration.Integration, *fault.Error) {
	return d.call("get-integration", functions.GetIntegration, by, args{"id": id})
}

func (d desk) list(a args) (page.Page[integration.Integration], *fault.Error) {
	d.t.Helper()
	return handlertest.Call[page.Page[integration.Integration]](d.t, d.p, "list-integrations", functions.ListIntegrations, d.as(tenant.Member), a)
}

func (d desk) deliveries(by tenant.Role, a args) (page.Page[integration.Delivery], *fault.Error) {
	d.t.Helper()
	return handlertest.Call[page.Page[integration.Delivery]](d.t, d.p, "list-deliveries", functions.ListDeliveries, d.as(by), a)
}

// generic is the input of a new integration.
func (d desk) generic(name string) args {
	return args{"name": name, "provider": "generic", "agentId": d.AgentID, "secret": args{"signing": signing}}
}

// made is a new integration.
func (d desk) made(input args) integration.Integration {
	d.t.Helper()
	i, err := d.create(tenant.Owner, input)
	require.Nil(d.t, err)
	return i
}
