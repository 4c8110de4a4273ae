package export_test

import (
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit/export"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
)

func TestParseFilter(t *testing.T) {
	now := ident.Time{Time: time.Date(2026, 3, 8, 0, 0, 0, 0, time.UTC)}
	for asked, want := range map[string]string{
		``:     `{"from":"2026-03-01T00:00:00.000000Z","to":"2026-03-08T00:00:00.000000Z"}`,
		`null`: `{"from":"2026-03-01T00:00:00.000000Z","to":"2026-03-08T00:00:00.000000Z"}`,
		`{"eventType":"agent.created","actor":null}`:                                `{"eventType":"agent.created","from":"2026-03-01T00:00:00.000000Z","to":"2026-03-08T00:00:00.000000Z"}`,
		`{"to":"2026-02-08T00:00:00Z"}`:                                             `{"from":"2026-02-01T00:00:00.000000Z","to":"2026-02-08T00:00:00.000000Z"}`,
		`{"from":"2025-12-08T00:00:00Z"}`:                                           `{"from":"2025-12-08T00:00:00.000000Z","to":"2026-03-08T00:00:00.000000Z"}`, // 90 days
		`{"from":"2020-01-01T00:00:00Z","to":"2020-03-31T00:00:00Z"}`:               `{"from":"2020-01-01T00:00:00.000000Z","to":"2020-03-31T00:00:00.000000Z"}`, // 90 days
		`{"from":"2026-03-01T02:00:00.5+02:00","to":"2026-03-02T00:00:00.000000Z"}`: `{"from":"2026-03-01T00:00:00.500000Z","to":"2026-03-02T00:00:00.000000Z"}`,
	} {
		f, err := export.ParseFilter(json.RawMessage(asked), now)
		require.NoError(t, err, asked)
		text, err := f.Canonical()
		require.NoError(t, err)
		require.Equal(t, want, string(text), asked)
	}
	for asked, message := range map[string]string{
		`{"from":"2025-12-07T23:59:59.999999Z"}`:                             "an export covers at most 90 days",
		`{"from":"2020-01-01T00:00:00Z","to":"2020-03-31T00:00:00.000001Z"}`: "an export covers at most 90 days",
		`{"from":"2026-03-09T00:00:00Z"}`:                                    "from must be before to",
		`{"from":"2026-03-02T00:00:00Z","to":"2026-03-02T00:00:00Z"}`:        "from must be before to",
		`{"tenantId":"acme"}`:                                                "tenantId must be a UUID",
		`{"actor":"` + strings.Repeat("x", 4097-len(`{"actor":""}`)) + `"}`:  "the filter is larger than 4096 bytes",
		`{"actor":"` + strings.Repeat("\\u00e9", 2043) + `"}`:                "the filter is larger than 4096 bytes",
	} {
		_, err := export.ParseFilter(json.RawMessage(asked), now)
		require.Equal(t, fault.Invalid("%s", message), err, asked)
	}
	for _, asked := range []string{`{"actor":"` + strings.Repeat("x", 4096-len(`{"actor":""}`)) + `"}`, `{"actor":"` + strings.Repeat(`\u0026`, 4096-len(`{"actor":""}`)) + `"}`} {
		_, err := export.ParseFilter(json.RawMessage(asked), now)
		require.NoError(t, err, "4096 bytes, whatever the spelling")
	}
}

// TestRateLimit: of any number of requests at once exactly ten succeed, for each operator, and any hour counts.
func TestRateLimit(t *testing.T) {
	db := pgtest.New(t)
	tenants := []string{db.Tenant(t, "acme"), db.Tenant(t, "globex")}
	var turn atomic.Int32
	filter, err := export.ParseFilter(nil, ident.Now())
	require.NoError(t, err)
	create := func(operator string) error {
		id := tenants[turn.Add(1)%2]
		return db.App.InTenant(t.Context(), id, func(tx pgx.Tx) error {
			_, err := export.Create(t.Context(), tx, id, operator, export.CSV, filter)
			return err
		})
	}
	const each = 16
	errs := make(chan error, 2*each)
	var wg sync.WaitGroup
	for range each {
		wg.Go(func() { errs <- create("ops@acme.test") })
		wg.Go(func() { errs <- create("Other@acme.test") })
	}
	wg.Wait()
	created := 0
	for range 2 * each {
		if err := <-errs; err == nil {
			created++
		} else {
			require.Equal(t, fault.RateLimitExceeded, fault.From(err).Type)
		}
	}
	require.Equal(t, 2*export.PerHour, created)
	require.Error(t, create("OPS@acme.test"), "the address in any spelling")

	_, err = db.Superuser(t).Exec(t.Context(), `update export_jobs set requested_at = requested_at - interval '1 hour'
		where id = (select id from export_jobs where requested_by = 'ops@acme.test' order by requested_at limit 1)`)
	require.NoError(t, err)
	require.NoError(t, create("ops@acme.test"), "an hour later one is free")
	require.Error(t, create("ops@acme.test"))

	for _, format := range []export.Format{"", "csv", "XLSX"} {
		err := db.App.InTenant(t.Context(), tenants[0], func(tx pgx.Tx) error {
			_, err := export.Create(t.Context(), tx, tenants[0], "third@acme.test", format, filter)
			return err
		})
		require.Equal(t, fault.ValidationError, fault.From(err).Type)
	}
}
