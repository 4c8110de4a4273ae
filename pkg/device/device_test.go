package device_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/device"
	"github.com/agentplatform/agentplatform/pkg/local/outbox"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/push"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// watched is the push service, and tells when it is to forget an endpoint.
type watched struct {
	*outbox.Outbox
	forgets func(endpoint string)
}

// Unregister implements push.Carrier.
func (w *watched) Unregister(ctx context.Context, endpoint string) error {
	if w.forgets != nil {
		w.forgets(endpoint)
	}
	return w.Outbox.Unregister(ctx, endpoint)
}

// Whoever registers a device just when it is taken from another user keeps it.
func TestADeviceThatSomebodyRegistersMeanwhile(t *testing.T) {
	db := pgtest.New(t)
	o, err := outbox.Open(outbox.Config{Dir: t.TempDir()})
	require.NoError(t, err)
	carrier := &watched{Outbox: o}
	s := device.Devices{DB: db.App, Push: push.New(carrier)}
	acme, globex := db.World(t, "acme"), db.World(t, "globex")
	register := func(w pgtest.World, token string) {
		_, err := s.Register(t.Context(), tenant.Caller{TenantID: w.TenantID, UserID: w.UserID}, "fcm", token)
		require.NoError(t, err)
	}
	tokens := map[string]string{} // of the two that are too many
	for _, token := range []string{"one", "two"} {
		endpoint, err := s.Push.Register(t.Context(), push.FCM, token, acme.TenantID+" "+acme.UserID)
		require.NoError(t, err)
		tokens[endpoint] = token
	}
	for i := range device.Most - 1 {
		register(acme, fmt.Sprint("token-", i))
	}
	for endpoint := range tokens {
		_, err := db.Superuser(t).Exec(t.Context(), `insert into devices (tenant_id, id, user_id, platform, endpoint, seen_at) values ($1, gen_random_uuid(), $2, 'fcm', $3, now() - interval '1 day')`,
			acme.TenantID, acme.UserID, endpoint)
		require.NoError(t, err)
	}
	forgotten := ""
	carrier.forgets = func(endpoint string) {
		carrier.forgets = nil
		forgotten = endpoint
		for other, token := range tokens {
			if other != endpoint {
				register(globex, token)
			}
		}
	}
	register(acme, "new")
	require.Contains(t, tokens, forgotten)
	for endpoint := range tokens {
		err := s.Push.Send(t.Context(), endpoint, push.Notification{Title: "t"})
		if endpoint == forgotten {
			require.ErrorIs(t, err, push.ErrGone)
		} else {
			require.NoError(t, err)
		}
	}
}

func devices(t *testing.T, db *pgtest.DB) device.Devices {
	o, err := outbox.Open(outbox.Config{Dir: t.TempDir()})
	require.NoError(t, err)
	return device.Devices{DB: db.App, Push: push.New(o)}
}

// atOnce runs n calls that begin together.
func atOnce(n int, call func(i int)) {
	var start, done sync.WaitGroup
	start.Add(n)
	for i := range n {
		done.Go(func() {
			start.Done()
			start.Wait()
			call(i)
		})
	}
	done.Wait()
}

// One device, registered by users of two tenants over and over at once: it is one tenant's in the end, and everybody was answered.
func TestADeviceOfTwoTenantsAtOnce(t *testing.T) {
	db := pgtest.New(t)
	s := devices(t, db)
	worlds := []pgtest.World{db.World(t, "acme"), db.World(t, "globex")}
	errs := make([]error, 16)
	atOnce(len(errs), func(i int) {
		w := worlds[i%2]
		_, errs[i] = s.Register(t.Context(), tenant.Caller{TenantID: w.TenantID, UserID: w.UserID}, "fcm", "shared")
	})
	for _, err := range errs {
		if err != nil {
			require.EqualError(t, err, "the device is being registered by somebody else: try again")
		}
	}
	owners := 0
	for _, w := range worlds {
		found, err := device.List(t.Context(), db.App.In(w.TenantID), w.UserID, nil, 10)
		require.NoError(t, err)
		owners += len(found)
	}
	require.Equal(t, 1, owners)
}

func TestTheBoundHoldsAtOnce(t *testing.T) {
	db := pgtest.New(t)
	s := devices(t, db)
	w := db.World(t, "acme")
	errs := make([]error, 2*device.Most)
	atOnce(len(errs), func(i int) {
		_, errs[i] = s.Register(t.Context(), tenant.Caller{TenantID: w.TenantID, UserID: w.UserID}, "fcm", fmt.Sprint("token-", i))
	})
	for _, err := range errs {
		require.NoError(t, err)
	}
	found, err := device.List(t.Context(), db.App.In(w.TenantID), w.UserID, nil, 100)
	require.NoError(t, err)
	require.Len(t, found, device.Most)
}
