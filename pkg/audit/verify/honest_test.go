package verify_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/ledger"
	"github.com/agentplatform/agentplatform/pkg/audit/verify"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/sign"
)

// An agent runtime may tell of what happened a day ago, and of what its clock puts five minutes ahead. What it was allowed to say must not become a finding
// because the event then waited for the drainer, or because the drainer's clock is a little behind.
func TestTimesThatAnEmitterMaySay(t *testing.T) {
	for name, c := range map[string]struct{ occurred, drained time.Duration }{
		"old, and drained by the sweep":        {-24*time.Hour + time.Second, time.Minute},
		"ahead, and drained by a slower clock": {5*time.Minute - time.Second, -3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := empty(t, 1)
			w.Record(1)
			e := audit.Event{TenantID: w.Tenants[0], Actor: "runtime", ActorType: audit.ActorAgent, Source: audit.SourceRuntime, Type: audit.AgentCreated,
				OccurredAt: ident.Time{Time: w.Now().Add(c.occurred)}, Payload: map[string]any{"agentId": "a"}}
			w.Offset += time.Hour
			e.OccurredAt = ident.Time{Time: w.Now().Add(c.occurred)}
			require.NoError(t, w.Box.InTenant(t.Context(), w.DB.App, e.TenantID, func(tx pgx.Tx) error { return w.Box.Record(t.Context(), tx, e) }))
			w.Offset += c.drained
			w.Drain()
			w.Anchor()
			requireClean(t, w.verify())
		})
	}
}

// The drainer is out of order for hours, and events wait. When they came into the outbox tells what the emitter may say of them.
func TestALongWaitInTheOutbox(t *testing.T) {
	for name, c := range map[string]struct {
		occurred time.Duration
		found    bool
	}{
		"as old as the API takes it": {-24*time.Hour + time.Second, false},
		"older":                      {-24*time.Hour - 2*time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := empty(t, 1)
			w.Offset = 0 // the database says when a row came
			e := audit.Event{EventID: ident.New(), TenantID: w.Tenants[0], Actor: "runtime", ActorType: audit.ActorAgent, Source: audit.SourceRuntime, Type: audit.AgentCreated,
				OccurredAt: ident.Time{Time: w.Now().Add(c.occurred)}, Payload: map[string]any{"agentId": "a"}}
			require.NoError(t, w.Box.InTenant(t.Context(), w.DB.App, e.TenantID, func(tx pgx.Tx) error { return w.Box.Record(t.Context(), tx, e) }))
			w.Offset += 3 * time.Hour
			w.Drain()
			w.Anchor()
			r := w.verify()
			if c.found {
				requireFound(t, r, verify.Finding{Class: verify.OccurredAt, EventID: e.EventID, Position: 1})
				require.Len(t, r.Findings, 1)
				return
			}
			requireClean(t, r)
			require.Contains(t, strings.Join(r.Notices, "\n"), "1 events occurred more than 24h0m0s before they were recorded")
		})
	}
}

// unsigned is a signer that is out of order.
type unsigned struct {
	sign.Signer
	broken bool
}

func (u *unsigned) Sign(ctx context.Context, digest [32]byte) ([]byte, error) {
	if u.broken {
		return nil, errors.New("the key cannot be reached")
	}
	return u.Signer.Sign(ctx, digest)
}

// The bucket can be read, and nothing can be signed or put for a while: one anchor is late, the next covers the time, as a backfill if it was long. No finding.
func TestAnOutageOfTheKey(t *testing.T) {
	for _, d := range []time.Duration{2 * time.Hour, interval + time.Minute} {
		t.Run(d.String(), func(t *testing.T) { outage(t, d) })
	}
}

func outage(t *testing.T, d time.Duration) {
	w := empty(t, 1)
	w.Offset = -d
	key := &unsigned{w.Signer, true}
	l := ledger.New(ledger.Config{DB: w.DB.Open(t, w.DB.LedgerURL), Bucket: w.Bucket, Signer: key, Key: emission, Origin: origin, Interval: interval, BeaconEvery: -1, Now: w.Now})
	for w.Offset < 0 {
		w.Emit(audit.Event{TenantID: w.Tenants[0], Payload: map[string]any{"agentId": ident.New()}})
		_ = l.Drain(t.Context())
		require.Error(t, l.PublishAnchor(t.Context()))
		w.Offset += interval
	}
	key.broken = false
	require.NoError(t, l.Drain(t.Context()))
	require.NoError(t, l.PublishAnchor(t.Context()))
	r := w.verify(func(c *verify.Config) { c.ClockTolerance = 0 })
	requireClean(t, r)
	require.Contains(t, strings.Join(r.Notices, "\n"), "the next one was closed after that and covers the time")
}
