package verify_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/verify"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/object"
)

// window is when a cadence begins and ends.
func (w *world) window(n int) (from, to time.Time) {
	w.T.Helper()
	return ask[time.Time](w, `select window_from from audit_anchors where number = $1`, n), ask[time.Time](w, `select window_to from audit_anchors where number = $1`, n)
}

func TestSinceAndUntil(t *testing.T) {
	w := populated(t)
	a := w.Tenants[0]
	_, end1 := w.window(1)
	begin3, end3 := w.window(3)
	since := func(at time.Time) func(*verify.Config) { return func(c *verify.Config) { c.Since = at } }
	until := func(at time.Time) func(*verify.Config) { return func(c *verify.Config) { c.Until = at } }

	r := w.verify(since(end1))
	requireClean(t, r)
	require.EqualValues(t, 27, r.Counts.Events)
	require.EqualValues(t, 9, r.Counts.Logs, "of three cadences")
	require.EqualValues(t, 4, r.Counts.Anchors, "three, and the base")

	r = w.verify(until(begin3))
	requireClean(t, r)
	require.EqualValues(t, 12, r.Counts.Events)
	require.EqualValues(t, 2, r.LastAnchor.Number)

	requireClean(t, w.verify(since(end1), until(end3)))
	requireClean(t, w.verify(since(time.Now().Add(time.Hour))))
	requireClean(t, w.verify(until(time.Now().Add(-1000*time.Hour))))

	w.backup()
	for name, c := range map[string]struct {
		position int
		config   []func(*verify.Config)
		clean    bool
	}{
		"before since, text": {2, []func(*verify.Config){since(end1)}, true},
		"after since":        {3, []func(*verify.Config){since(end1)}, false},
		"before until":       {6, []func(*verify.Config){until(end3)}, false},
		"after until":        {7, []func(*verify.Config){until(end3)}, true},
		"between":            {5, []func(*verify.Config){since(end1), until(end3)}, false},
		"another tenant's":   {5, []func(*verify.Config){func(c *verify.Config) { c.Tenant = w.Tenants[1] }}, true},
		"the tenant's":       {5, []func(*verify.Config){func(c *verify.Config) { c.Tenant = strings.ToUpper(a) }}, false},
		"locks only":         {5, []func(*verify.Config){func(c *verify.Config) { c.CheckRetention = true }}, true},
		"locks, no database": {5, []func(*verify.Config){func(c *verify.Config) { c.CheckRetention, c.Database = true, "" }}, true},
		"chains only":        {5, []func(*verify.Config){func(c *verify.Config) { c.CheckChain = true }}, false},
		"both":               {5, []func(*verify.Config){func(c *verify.Config) { c.CheckChain, c.CheckRetention = true, true }}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w.edit(a, c.position, renamed, false)
			defer w.restore()
			r := w.verify(c.config...)
			require.Equal(t, c.clean, r.OK(), list(r))
			if !c.clean {
				require.Equal(t, w.event(a, c.position), r.FirstEvent().EventID)
			}
		})
	}
	t.Run("a hash before since", func(t *testing.T) {
		w.edit(a, 1, renamed, true)
		defer w.restore()
		requireFound(t, w.verify(since(end1)), verify.Finding{Class: verify.HeadMismatch, TenantID: a, Position: 2})
	})
	t.Run("a side tree before since", func(t *testing.T) {
		w.super(`update audit_events set event_hash = repeat('0', 64) where tenant_id = $1 and chain_position = 1`, a)
		w.super(`update audit_events set prev_hash = repeat('0', 64) where tenant_id = $1 and chain_position = 2`, a)
		defer w.restore()
		requireFound(t, w.verify(since(end1)), verify.Finding{Class: verify.TreeMismatch, TenantID: a, Position: 2})
	})
	t.Run("the state of the log at since is wrong", func(t *testing.T) {
		w.super(`update audit_anchors set log_tree = null where number = 1`)
		defer w.restore()
		r := w.verify(since(end1))
		requireClean(t, r)
	})
	t.Run("an anchor is no anchor", func(t *testing.T) {
		w.overwrite(anchor.Key(2), func([]byte) []byte { return []byte("{}") })
		defer w.restore()
		requireFound(t, w.verify(since(end1)), verify.Finding{Class: verify.AnchorInvalid, Cadence: 2})
		requireFound(t, w.verify(until(end3)), verify.Finding{Class: verify.AnchorInvalid, Cadence: 2})
	})
}

func TestNothingToVerify(t *testing.T) {
	w := empty(t, 1)
	requireFound(t, w.verify(), verify.Finding{Class: verify.NothingToVerify})
	requireFound(t, w.verify(func(c *verify.Config) { c.CheckRetention = true }), verify.Finding{Class: verify.NothingToVerify})
	requireClean(t, w.verify(func(c *verify.Config) { c.AllowEmpty = true }))

	w.Record(1)
	r := w.verify()
	requireClean(t, r)
	require.Contains(t, strings.Join(r.Notices, "\n"), "there is no anchor yet")
	w.Offset += time.Hour
	requireFound(t, w.verify(), verify.Finding{Class: verify.AnchorLate})

	w.Anchor()
	r = w.verify()
	requireClean(t, r)
	w.Offset += 3 * interval
	require.NoError(t, w.Ledger.PublishAnchor(t.Context()))
	r = w.verify()
	requireClean(t, r)
	require.Contains(t, strings.Join(r.Notices, "\n"), "cadence-000000000002 is a backfill")
}

func TestSettingsThatContradict(t *testing.T) {
	b := object.New(object.Config{Region: "us-east-1", Endpoint: "http://127.0.0.1:1"}).In(name)
	now := time.Now()
	for want, c := range map[string]verify.Config{
		"no bucket":            {Database: "x"},
		"without the database": {Bucket: b},
		"is not a tenant id":   {Bucket: b, Database: "x", Tenant: "acme"},
		"not after since":      {Bucket: b, Database: "x", Since: now, Until: now},
		"checks everything":    {Bucket: b, Database: "x", State: "x", CheckChain: true},
		"is not a witness's":   {Bucket: b, Database: "x", WitnessKeys: []anchor.Verifier{{}}},
	} {
		_, err := verify.Run(t.Context(), c)
		require.ErrorContains(t, err, want)
	}
}

func TestARunGoesOnFromTheLast(t *testing.T) {
	w := populated(t)
	file := filepath.Join(t.TempDir(), "sub", "state.json")
	again := func(change ...func(*verify.Config)) verify.Report {
		return w.verify(append(change, func(c *verify.Config) { c.State = file })...)
	}
	requireClean(t, again())
	first, err := os.ReadFile(file)
	require.NoError(t, err)

	// Nothing new: of each tenant the event that was pending then is read.
	r := again()
	requireClean(t, r)
	require.EqualValues(t, 3, r.Counts.Events)
	require.EqualValues(t, 0, r.Counts.Beacons)

	// Two more anchors, and a tenant that was not there.
	w.Record(2)
	w.Anchor()
	w.Tenants = append(w.Tenants, w.DB.Tenant(t, "late"))
	w.Record(1)
	w.Anchor()
	w.Record(1, w.Tenants[3])
	r = again()
	requireClean(t, r)
	require.EqualValues(t, 3+6+4+1, r.Counts.Events)
	require.EqualValues(t, 3+4, r.Counts.Logs)
	require.EqualValues(t, 3, r.Counts.Anchors)
	requireClean(t, again())
	requireClean(t, w.verify())
	newest, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotEqual(t, string(first), string(newest))

	// What only who remembers can find: a past rewritten before what is new, and with the right key.
	w.backup()
	a := w.Tenants[0]
	for name, c := range map[string]struct {
		do   func()
		want verify.Finding
	}{
		"new event edited":      {func() { w.edit(w.Tenants[3], 2, renamed, false) }, verify.Finding{Class: verify.HashMismatch, TenantID: w.Tenants[3], Position: 2}},
		"pending event of then": {func() { w.edit(w.Tenants[3], 2, renamed, true) }, verify.Finding{Class: verify.HistoryRewritten, TenantID: w.Tenants[3], Position: 2}},
		"pending event gone":    {func() { w.super(`delete from audit_events where tenant_id = $1 and chain_position = 2`, w.Tenants[3]) }, verify.Finding{Class: verify.HistoryRewritten, TenantID: w.Tenants[3], Position: 2}},
		"head of then edited":   {func() { w.edit(a, 12, renamed, true) }, verify.Finding{Class: verify.HistoryRewritten, TenantID: a, Position: 12}},
		"head of then gone":     {func() { w.super(`delete from audit_events where tenant_id = $1 and chain_position >= 12`, a) }, verify.Finding{Class: verify.HistoryRewritten, TenantID: a, Position: 1}},
		"tenant gone":           {func() { w.super(`delete from audit_events where tenant_id = $1`, a) }, verify.Finding{Class: verify.HistoryRewritten, TenantID: a}},
		"anchor of then, signed": {func() {
			w.reseal(6, w.Signer, func(h *anchor.Header, _ []anchor.Tenant) { h.RecordedAt = later(h.RecordedAt, time.Microsecond) })
		}, verify.Finding{Class: verify.HistoryRewritten, Key: anchor.Key(6)}},
		"anchor of then gone": {func() { require.NoError(t, os.Remove(w.file(anchor.Key(6)))) }, verify.Finding{Class: verify.HistoryRewritten, Key: anchor.Key(6)}},
		"event id of old used again": {func() {
			w.super(`alter table audit_events drop constraint if exists audit_events_event_id`)
			w.super(`update audit_events set event_id = $2 where tenant_id = $1 and chain_position = 2`, w.Tenants[3], w.event(a, 1))
		}, verify.Finding{Class: verify.DuplicateEvent, EventID: w.event(a, 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(file, newest, 0o600))
			c.do()
			defer w.restore()
			requireFound(t, again(), c.want)
			kept, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(newest), string(kept), "a run that found something is not remembered")
		})
	}

	for name, text := range map[string]string{"of another bucket": strings.Replace(string(newest), `"bucket":"audit"`, `"bucket":"other"`, 1), "broken": "{", "of no tenant": strings.Replace(string(newest), `"tenants":[`, `"tenants":[null,`, 1), "of another version": strings.Replace(string(newest), `"version":1`, `"version":2`, 1)} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			c := w.config()
			c.State = file
			_, err := verify.Run(t.Context(), c)
			require.ErrorContains(t, err, "is not the state of an earlier run")
		})
	}
}

// A writer at work is no finding: the bucket is listed before the database is read, and what is newer than that is let be.
func TestAWriterAtWorkIsNoFinding(t *testing.T) {
	w := populated(t)
	ctx, stop := context.WithCancel(t.Context())
	var g errgroup.Group
	g.Go(func() error {
		for i := 0; ctx.Err() == nil; i++ {
			w.Record(1)
			if i%2 == 0 {
				w.Anchor()
			}
		}
		return nil
	})
	file := filepath.Join(t.TempDir(), "state.json")
	for i := range 6 {
		requireClean(t, w.verify(func(c *verify.Config) {
			if now := w.config().Now().Add(interval); i%2 == 1 {
				c.State, c.Now = file, func() time.Time { return now }
			}
			c.MaxLateness, c.MaxBeaconLag = 100*time.Hour, -1
		}))
	}
	stop()
	require.NoError(t, g.Wait())
	requireClean(t, w.verify())
}

// Whatever does not answer ends the run with an error, not the patience of who waits.
func TestNobodyWaitsForEver(t *testing.T) {
	w := populated(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, and nobody answers
	require.NoError(t, err)
	defer silent.Close()
	address := silent.Addr().String()
	deaf := object.New(object.Config{Region: "us-east-1", Endpoint: "http://" + address, AccessKey: "x", Secret: "x", PathStyle: true}).In(name)
	for want, change := range map[string]func(*verify.Config){
		"the bucket has been silent": func(c *verify.Config) { c.Bucket = deaf },
		"the database":               func(c *verify.Config) { c.Database = "postgres://x:secret@" + address + "/x?sslmode=disable" },
		"the database's connection":  func(c *verify.Config) { c.Database = "postgres://x:secret@" + address + ":x/x" },
		"context canceled":           nil,
	} {
		t.Run(want, func(t *testing.T) {
			c := w.config()
			c.Patience = 300 * time.Millisecond
			ctx := t.Context()
			if change == nil {
				var cancel context.CancelFunc
				ctx, cancel = context.WithCancel(ctx)
				cancel()
			} else {
				change(&c)
			}
			r, err := verify.Run(ctx, c)
			require.ErrorContains(t, err, want)
			require.NotContains(t, err.Error(), "secret")
			require.False(t, r.OK())
			require.False(t, r.Complete)
			require.NotEmpty(t, r.Error)
		})
	}
	t.Run("a lock in the database", func(t *testing.T) {
		tx, err := w.root.Begin(t.Context())
		require.NoError(t, err)
		defer func() { require.NoError(t, tx.Rollback(context.Background())) }()
		_, err = tx.Exec(t.Context(), "lock table audit_events in access exclusive mode")
		require.NoError(t, err)
		c := w.config()
		c.Patience = 300 * time.Millisecond
		_, err = verify.Run(t.Context(), c)
		require.ErrorContains(t, err, "the database has been silent for 300ms")
	})
}

func TestWitnesses(t *testing.T) {
	w := populated(t)
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	key, err := anchor.WitnessVerifier("witness.test/one", public)
	require.NoError(t, err)
	with := func(c *verify.Config) { c.WitnessKeys = []anchor.Verifier{key} }
	requireFound(t, w.verify(with), verify.Finding{Class: verify.Unwitnessed, Cadence: 1})

	cosign := func(n uint64) {
		w.overwrite(anchor.Key(n), func(text []byte) []byte {
			a, err := anchor.Parse(text)
			require.NoError(t, err)
			return cosigned(t, text, a.Checkpoint, key, private)
		})
		w.super(`update audit_anchors set object_sha256 = $2 where number = $1`, n, anchor.SHA256(read(t, w.file(anchor.Key(n)))))
	}
	w.super(`alter table audit_anchors disable trigger all`)
	cosign(4)
	requireClean(t, w.verify(with))
	w.Record(1)
	w.Anchor()
	requireFound(t, w.verify(with), verify.Finding{Class: verify.Unwitnessed, Cadence: 5})
	requireClean(t, w.verify(with, func(c *verify.Config) { c.MaxUnwitnessed = 1 }))
}

// cosigned is the anchor with a witness's line.
func cosigned(t *testing.T, object []byte, note string, key anchor.Verifier, private ed25519.PrivateKey) []byte {
	t.Helper()
	quoted, err := json.Marshal(note)
	require.NoError(t, err)
	longer, err := json.Marshal(note + cosignature(note, key, private))
	require.NoError(t, err)
	out := strings.Replace(string(object), string(quoted), string(longer), 1)
	require.NotEqual(t, string(object), out)
	return []byte(out)
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return text
}

// A log of several megabytes is streamed, and an event of one is read like any other.
func TestLargeEvents(t *testing.T) {
	w := empty(t, 1)
	long := make([]any, 200)
	for i := range long {
		long[i] = fmt.Sprintf("%04d", i) + strings.Repeat("ü", 2000)
	}
	for range 6 {
		e := audit.Event{EventID: ident.New(), TenantID: w.Tenants[0], OccurredAt: ident.Time{Time: w.Now()}, Actor: "tester", ActorType: audit.ActorSystem, Source: audit.SourceSystem,
			Type: audit.AgentSkillsChanged, Payload: map[string]any{"addedSkills": long}}
		require.NoError(t, w.Box.InTenant(t.Context(), w.DB.App, e.TenantID, func(tx pgx.Tx) error { return w.Box.Record(t.Context(), tx, e) }))
	}
	w.Drain()
	w.Anchor()
	key := anchor.EventsKey(w.Tenants[0], 1)
	require.Greater(t, len(read(t, w.file(key))), 4<<20)
	requireClean(t, w.verify())
	w.backup()
	w.edit(w.Tenants[0], 4, func(s string) string { return strings.Replace(s, "0007", "0008", 1) }, true)
	requireFound(t, w.verify(), verify.Finding{Class: verify.EventChanged, Position: 4, EventID: w.event(w.Tenants[0], 4)})
	w.restore()
	w.overwrite(key, func(b []byte) []byte { return slices.Replace(b, 1<<20, 1<<20+4, []byte("xxxx")...) })
	requireFound(t, w.verify(), verify.Finding{Class: verify.LogMismatch, Key: key})
}

// Many findings are counted, and the first are listed.
func TestFindingsAreBounded(t *testing.T) {
	w := empty(t, 2)
	w.Record(60)
	w.Anchor()
	w.super(`update audit_events set canonical = replace(canonical, 'Ada', 'Eve')`)
	r := w.verify(func(c *verify.Config) { c.MaxFindings = 5 })
	require.Len(t, r.Findings, 5)
	require.Equal(t, 115, r.MoreFindings)
	for i, f := range r.Findings {
		require.Equal(t, verify.HashMismatch, f.Class)
		require.EqualValues(t, i+1, f.Position)
		require.Equal(t, slices.Min(w.Tenants), f.TenantID)
	}
}
