package integration_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/integration"
)

// log writes deliveries.
func (w *world) log(deliveries ...integration.Delivery) {
	w.t.Helper()
	var b pgx.Batch
	for _, d := range deliveries {
		integration.Log(&b, d)
	}
	require.NoError(w.t, w.db.App.Once(w.t.Context(), w.TenantID, &b))
}

func (w *world) arrived(outcome integration.Outcome, body string) integration.Delivery {
	d := integration.Arrived(w.TenantID, integration.Slack, []byte(body))
	d.Outcome = outcome
	return d
}

func (w *world) deliveries(f integration.DeliveryFilter, after *integration.DeliveryCursor, limit int) []integration.Delivery {
	w.t.Helper()
	found, err := integration.Deliveries(w.t.Context(), w.db.App.In(w.TenantID), f, after, limit)
	require.NoError(w.t, err)
	return found
}

func TestLog(t *testing.T) {
	w := newWorld(t)
	w.exec(`insert into threads (tenant_id, uuid, prefix, number, channel, agent_id, space_id) values ($1, gen_random_uuid(), 'SLACK', 7, 'SLACK', $2, $3)`, w.TenantID, w.AgentID, w.SpaceID)
	const body = `{"text": "Grüße 👋"}`
	before := ident.Now()
	d := w.arrived(integration.OK, body)
	d.IntegrationID, d.Event, d.ProviderID, d.ReplayOf = new(ident.New()), new("app_mention"), new("Ev1"), new(ident.New())
	d.ThreadUUID = new(query[string](w, `select uuid::text from threads`))
	d.Keep([]byte(body))
	w.log(d)
	found := w.deliveries(integration.DeliveryFilter{}, nil, 10)
	require.Len(t, found, 1)
	got := found[0]
	sum := sha256.Sum256([]byte(body))
	require.Equal(t, []any{d.ID, w.TenantID, integration.Slack, *d.IntegrationID, integration.OK, "app_mention", "Ev1", len(body), hex.EncodeToString(sum[:]), body, "SLACK-7", *d.ThreadUUID, *d.ReplayOf},
		[]any{got.ID, got.TenantID, got.Provider, *got.IntegrationID, got.Outcome, *got.Event, *got.ProviderID, got.Size, got.SHA256, *got.Body, *got.ThreadID, *got.ThreadUUID, *got.ReplayOf})
	require.Nil(t, got.WebhookID)
	require.Nil(t, got.Error)
	require.Positive(t, got.Duration)
	require.False(t, got.ReceivedAt.Before(before.Time) || got.ReceivedAt.After(time.Now()))

	one, err := integration.GetDelivery(t.Context(), w.db.App.In(w.TenantID), d.ID)
	require.NoError(t, err)
	require.Equal(t, got, one)
	other := w.neighbour("globex")
	for _, id := range []string{d.ID, ident.New(), "no id"} {
		_, err := integration.GetDelivery(t.Context(), w.db.App.In(other.TenantID), id)
		require.Equal(t, fault.Missing("delivery"), err)
	}
	require.Empty(t, other.deliveries(integration.DeliveryFilter{IntegrationID: d.IntegrationID}, nil, 10))
}

// The log takes what strangers send, as far as it may be kept.
func TestWhatTheLogKeeps(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		body string
		kept bool
	}{{"", true}, {"{}", true}, {strings.Repeat("x", 8192), true}, {strings.Repeat("x", 8193), false}, {"a\x00b", false}, {"\xff", false}, {`{"a":"\u0000"}`, true}, {strings.Repeat("é", 4096), true}} {
		d := w.arrived(integration.OK, c.body)
		d.Keep([]byte(c.body))
		w.log(d)
		got, err := integration.GetDelivery(t.Context(), w.db.App.In(w.TenantID), d.ID)
		require.NoError(t, err)
		require.Equal(t, len(c.body), got.Size)
		if !c.kept {
			require.Nil(t, got.Body)
			continue
		}
		require.Equal(t, c.body, *got.Body)
	}
	d := w.arrived(integration.Unverified, "secret, perhaps")
	d.Event, d.ProviderID, d.Error = new("a\x00b\xff"), new(strings.Repeat("é", 1000)), new("")
	w.log(d)
	got, err := integration.GetDelivery(t.Context(), w.db.App.In(w.TenantID), d.ID)
	require.NoError(t, err)
	require.Nil(t, got.Body, "unless it is said to be kept")
	require.Equal(t, []string{"ab", strings.Repeat("é", 250)}, []string{*got.Event, *got.ProviderID})
	require.Nil(t, got.Error)
}

func TestDeliveriesArePagedAndNarrowed(t *testing.T) {
	w := newWorld(t)
	places, webhook := []string{ident.New(), ident.New()}, ident.New()
	outcomes := []integration.Outcome{"ok", "unverified", "duplicate", "unknown", "invalid", "rate_limited", "error"}
	var all []integration.Delivery
	for n := range 28 {
		d := w.arrived(outcomes[n%7], fmt.Sprint(n))
		if d.IntegrationID = &places[n%2]; n%4 == 3 {
			d.IntegrationID, d.WebhookID = nil, &webhook
		}
		all = append(all, d)
	}
	w.log(all...)
	slices.SortFunc(all, func(a, b integration.Delivery) int { return strings.Compare(a.ID, b.ID) }) // within a millisecond they are in no order
	for name, c := range map[string]struct {
		filter integration.DeliveryFilter
		fits   func(d integration.Delivery) bool
	}{
		"all":                   {integration.DeliveryFilter{}, func(integration.Delivery) bool { return true }},
		"of an integration":     {integration.DeliveryFilter{IntegrationID: &places[0]}, func(d integration.Delivery) bool { return d.IntegrationID == &places[0] }},
		"of a webhook":          {integration.DeliveryFilter{WebhookID: &webhook}, func(d integration.Delivery) bool { return d.WebhookID != nil }},
		"taken in":              {integration.DeliveryFilter{Outcome: new(integration.OK)}, func(d integration.Delivery) bool { return d.Outcome == "ok" }},
		"unverified":            {integration.DeliveryFilter{Outcome: new(integration.Unverified)}, func(d integration.Delivery) bool { return d.Outcome == "unverified" }},
		"errors of a webhook":   {integration.DeliveryFilter{WebhookID: &webhook, Outcome: new(integration.Failed)}, func(d integration.Delivery) bool { return d.WebhookID != nil && d.Outcome == "error" }},
		"of both":               {integration.DeliveryFilter{WebhookID: &webhook, IntegrationID: &places[0]}, func(integration.Delivery) bool { return false }},
		"of nothing there is":   {integration.DeliveryFilter{IntegrationID: new(ident.New())}, func(integration.Delivery) bool { return false }},
		"of what is no id":      {integration.DeliveryFilter{IntegrationID: new("' or true --")}, func(integration.Delivery) bool { return false }},
		"of an unheard outcome": {integration.DeliveryFilter{Outcome: new(integration.Outcome("' or true --"))}, func(integration.Delivery) bool { return false }},
	} {
		var want, got []string
		for n := len(all) - 1; n >= 0; n-- {
			if c.fits(all[n]) {
				want = append(want, all[n].ID)
			}
		}
		for after := (*integration.DeliveryCursor)(nil); ; {
			found := w.deliveries(c.filter, after, 5)
			for _, d := range found {
				got = append(got, d.ID)
			}
			if len(found) < 5 {
				break
			}
			after = new(found[4].Cursor())
		}
		require.Equal(t, want, got, name)
	}
}

func TestPrune(t *testing.T) {
	w := newWorld(t)
	rows, err := integration.Prune(t.Context(), w.db.App)
	require.NoError(t, err)
	require.Zero(t, rows)
	for _, tenant := range []*world{w, w.neighbour("globex"), w.neighbour("initech")} {
		tenant.exec(`insert into threads (tenant_id, uuid, prefix, number, channel, agent_id, space_id) values ($1, gen_random_uuid(), 'SLACK', 1, 'SLACK', $2, $3)`, tenant.TenantID, tenant.AgentID, tenant.SpaceID)
		for _, age := range []string{"100 days", "91 days", "89 days", "0 days"} {
			tenant.exec(`insert into deliveries (tenant_id, id, provider, outcome, size, sha256, duration_us, received_at) values ($1, gen_random_uuid(), 'slack', 'ok', 1, '', 1, clock_timestamp() - $2::text::interval)`, tenant.TenantID, age)
			tenant.exec(`insert into delivery_keys (tenant_id, source_id, key, created_at) values ($1, gen_random_uuid(), 'd:1', clock_timestamp() - $2::text::interval)`, tenant.TenantID, age)
			tenant.exec(`insert into integration_replies (tenant_id, id, integration_id, thread_uuid, turn_id, created_at, finished_at, next_at) select $1, gen_random_uuid(), gen_random_uuid(), uuid,
				gen_random_uuid(), clock_timestamp() - $2::text::interval, clock_timestamp() - $2::text::interval, null from threads where tenant_id = $1`, tenant.TenantID, age)
			tenant.exec(`insert into task_events (tenant_id, id, webhook_id, provider, verified, finished_at, next_at) values ($1, gen_random_uuid(), gen_random_uuid(), 'asana', true,
				clock_timestamp() - $2::text::interval, null)`, tenant.TenantID, age)
			tenant.exec(`insert into pushes (tenant_id, event_id, device_id, created_at) values ($1, gen_random_uuid(), gen_random_uuid(), clock_timestamp() - $2::text::interval)`, tenant.TenantID, age)
		}
		tenant.exec(`insert into integration_replies (tenant_id, id, integration_id, thread_uuid, turn_id, created_at) select $1, gen_random_uuid(), gen_random_uuid(), uuid, gen_random_uuid(),
			clock_timestamp() - interval '1 year' from threads where tenant_id = $1`, tenant.TenantID)
		tenant.exec(`insert into task_events (tenant_id, id, webhook_id, provider, verified, created_at) values ($1, gen_random_uuid(), gen_random_uuid(), 'asana', true,
			clock_timestamp() - interval '1 year')`, tenant.TenantID)
	}
	left := func() string {
		return query[string](w, `select concat_ws(' ', (select count(*) from deliveries), (select count(*) from delivery_keys), (select count(*) from integration_replies), (select count(*) from task_events),
			(select count(*) from pushes))`)
	}
	require.Equal(t, "12 12 15 15 12", left())
	rows, err = integration.Prune(t.Context(), w.db.App)
	require.NoError(t, err)
	require.EqualValues(t, 30, rows)
	require.Equal(t, "6 6 9 9 6", left(), "what is not over stays, however old")

	// More than a transaction takes.
	w.exec(`insert into delivery_keys (tenant_id, source_id, key, created_at) select $1, $1, 'd:' || n, clock_timestamp() - interval '91 days' from generate_series(1, 10001) n`, w.TenantID)
	rows, err = integration.Prune(t.Context(), w.db.App)
	require.NoError(t, err)
	require.EqualValues(t, 10001, rows)
	require.Equal(t, "6 6 9 9 6", left())
}
