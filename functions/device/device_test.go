package device_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/device"
	"github.com/agentplatform/agentplatform/pkg/device"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/push"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type args = map[string]any

// person calls the functions as one user.
type person struct {
	t      testing.TB
	p      *handlertest.Platform
	claims tenant.Claims
	tenant string
}

func owner(t testing.TB, p *handlertest.Platform, w pgtest.World) person {
	return person{t, p, handlertest.Claims(w, tenant.Owner), w.TenantID}
}

func (b person) exec(sql string, args ...any) {
	b.t.Helper()
	var batch pgx.Batch
	batch.Queue(sql, args...)
	require.NoError(b.t, b.p.DB.App.Once(b.t.Context(), b.tenant, &batch))
}

// colleague is another user of the tenant.
func (b person) colleague() person {
	b.t.Helper()
	id := ident.New()
	b.exec(`insert into users (tenant_id, id, email, role) values ($1, $2, $3, 'member')`, b.tenant, id, id+"@acme.test")
	claims := maps.Clone(b.claims)
	claims["custom:user_id"], claims["custom:role"] = id, "member"
	return person{b.t, b.p, claims, b.tenant}
}

func (b person) register(platform, token string) (device.Device, *fault.Error) {
	b.t.Helper()
	return handlertest.Call[device.Device](b.t, b.p, "register-device", functions.RegisterDevice, b.claims, args{"input": args{"platform": platform, "token": token}})
}

func (b person) registered(platform, token string) device.Device {
	b.t.Helper()
	d, err := b.register(platform, token)
	require.Nil(b.t, err)
	return d
}

func (b person) unregister(id string) (device.Device, *fault.Error) {
	b.t.Helper()
	return handlertest.Call[device.Device](b.t, b.p, "unregister-device", functions.UnregisterDevice, b.claims, args{"id": id})
}

func (b person) devices() (ids []string) {
	b.t.Helper()
	ids = []string{}
	for token := any(nil); ; {
		got, err := handlertest.Call[page.Page[device.Device]](b.t, b.p, "list-devices", functions.ListDevices, b.claims, args{"limit": 7, "nextToken": token})
		require.Nil(b.t, err)
		for _, d := range got.Items {
			ids = append(ids, d.ID)
		}
		if got.NextToken == nil {
			return ids
		}
		token = *got.NextToken
	}
}

// endpoints are what is kept of the tenant's devices.
func (b person) endpoints() []string {
	b.t.Helper()
	found, err := postgres.All(b.t.Context(), b.p.DB.App.In(b.tenant), pgx.RowTo[string], `select endpoint from devices order by id`)
	require.NoError(b.t, err)
	return found
}

func TestDevices(t *testing.T) {
	p := handlertest.New(t)
	ann := owner(t, p, p.DB.World(t, "acme"))
	phone := ann.registered("fcm", "ann's-phone")
	require.Equal(t, device.Platform("fcm"), phone.Platform)
	require.Equal(t, phone.CreatedAt, phone.SeenAt)
	tablet := ann.registered("apns_sandbox", "AB01")
	require.Equal(t, device.Platform("apns_sandbox"), tablet.Platform)
	require.ElementsMatch(t, []string{phone.ID, tablet.ID}, ann.devices())

	again := ann.registered("fcm", "ann's-phone")
	require.Equal(t, phone.ID, again.ID)
	require.Equal(t, phone.CreatedAt, again.CreatedAt)
	require.True(t, again.SeenAt.After(phone.SeenAt.Time))
	require.Equal(t, tablet.ID, ann.registered("apns_sandbox", "ab01").ID, "one spelling")
	require.Len(t, ann.devices(), 2)

	for _, endpoint := range ann.endpoints() {
		require.NotContains(t, endpoint, "ann's-phone", "the token is not kept")
		require.NoError(t, push.New(p.Outbox()).Send(t.Context(), endpoint, push.Notification{Title: "t"}))
	}
	gone := ann.endpoints()[0]
	removed, err := ann.unregister(phone.ID)
	require.Nil(t, err)
	require.Equal(t, again, removed)
	require.ErrorIs(t, push.New(p.Outbox()).Send(t.Context(), gone, push.Notification{Title: "t"}), push.ErrGone)
	require.Equal(t, []string{tablet.ID}, ann.devices())
	for _, id := range []string{phone.ID, ident.New(), "no id"} {
		_, err := ann.unregister(id)
		require.Equal(t, fault.Missing("device"), err)
	}
}

func TestDevicesAreTheirUsersOwn(t *testing.T) {
	p := handlertest.New(t)
	ann, eve := owner(t, p, p.DB.World(t, "acme")), owner(t, p, p.DB.World(t, "globex"))
	bob := ann.colleague()
	d := bob.registered("fcm", "bob's")
	for _, other := range []person{ann, eve} {
		require.Empty(t, other.devices(), "an owner as well sees his own only")
		_, err := other.unregister(d.ID)
		require.Equal(t, fault.Missing("device"), err)
	}
	require.Equal(t, []string{d.ID}, bob.devices())
}

// Whoever registers a device has it in his hand.
func TestADeviceThatAnotherPersonHasNow(t *testing.T) {
	p := handlertest.New(t)
	ann, eve := owner(t, p, p.DB.World(t, "acme")), owner(t, p, p.DB.World(t, "globex"))
	bob := ann.colleague()
	first := ann.registered("apns", "ab01")
	moved := bob.registered("apns", "ab01")
	require.NotEqual(t, first.ID, moved.ID, "by its id nobody has it who had it")
	require.Empty(t, ann.devices())
	require.Equal(t, []string{moved.ID}, bob.devices())
	_, err := ann.unregister(first.ID)
	require.Equal(t, fault.Missing("device"), err)

	other := eve.registered("apns", "ab01")
	require.Empty(t, bob.devices(), "of another tenant")
	require.Empty(t, ann.endpoints())
	require.Equal(t, []string{other.ID}, eve.devices())
	require.Len(t, eve.endpoints(), 1)
	back := ann.registered("apns", "ab01")
	require.Empty(t, eve.endpoints())
	require.Equal(t, []string{back.ID}, ann.devices())
	require.NoError(t, push.New(p.Outbox()).Send(t.Context(), ann.endpoints()[0], push.Notification{Title: "t"}))
}

func TestAUserHasSoManyDevices(t *testing.T) {
	p := handlertest.New(t)
	ann := owner(t, p, p.DB.World(t, "acme"))
	bob := ann.colleague()
	his := bob.registered("fcm", "bob's")
	var all []string
	for i := range device.Most {
		all = append(all, ann.registered("fcm", fmt.Sprint("token-", i)).ID)
	}
	require.ElementsMatch(t, all, ann.devices()) // ids of one millisecond are in no order
	endpoints := ann.endpoints()
	seen := ann.registered("fcm", "token-0")
	require.Equal(t, all[0], seen.ID, "no new one")
	require.Len(t, ann.devices(), device.Most)
	last := ann.registered("fcm", "one-more")
	require.Equal(t, append(append([]string{all[0]}, all[2:]...), last.ID), ann.devices(), "the one that was not seen for the longest time goes")
	require.ErrorIs(t, push.New(p.Outbox()).Send(t.Context(), endpoints[2], push.Notification{Title: "t"}), push.ErrGone, "bob's is the first")
	require.Equal(t, []string{his.ID}, bob.devices())
}

func TestDevicesThatAreRefused(t *testing.T) {
	p := handlertest.New(t)
	ann := owner(t, p, p.DB.World(t, "acme"))
	for _, c := range [][2]string{{"apns", "no hex"}, {"fcm", ""}, {"fcm", "a b"}, {"gcm", "x"}, {"", "x"}, {"apns-sandbox'; drop table devices --", "ab"}} {
		_, err := ann.register(c[0], c[1])
		require.NotNil(t, err, c)
		require.Equal(t, fault.ValidationError, err.Type, c)
	}
	stranger := ann
	stranger.claims = maps.Clone(ann.claims)
	stranger.claims["custom:user_id"] = ident.New() // deleted while its token is still good
	_, err := stranger.register("fcm", "x")
	require.Equal(t, fault.Missing("user"), err)
	nobody := ann
	nobody.claims = tenant.Claims{}
	_, err = nobody.register("fcm", "x")
	require.Equal(t, fault.Forbidden, err.Type)
	require.Empty(t, ann.endpoints())
}

// A user who is deleted leaves no device behind.
func TestADeletedUsersDevices(t *testing.T) {
	p := handlertest.New(t)
	ann := owner(t, p, p.DB.World(t, "acme"))
	bob := ann.colleague()
	bob.registered("fcm", "bob's")
	bob.exec(`delete from users where id = $1`, bob.claims["custom:user_id"])
	require.Empty(t, ann.endpoints())
}
