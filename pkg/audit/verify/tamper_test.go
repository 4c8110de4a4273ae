package verify_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
	"github.com/agentplatform/agentplatform/pkg/audit/verify"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/agentplatform/agentplatform/pkg/sign"
)

// tables are what a test changes in the database.
var tables = []string{"audit_events", "audit_outbox", "audit_heads", "audit_anchored_heads", "audit_anchors", "audit_ledger"}

// backup remembers database and bucket, for restore.
func (w *world) backup() {
	w.T.Helper()
	for _, table := range tables {
		w.super("create table backup_" + table + " as table " + table)
	}
	w.copyBucket("objects", "objects.backup")
	w.copyBucket("versions", "versions.backup")
	w.copyBucket("meta", "meta.backup")
}

// restore takes back whatever was done since.
func (w *world) restore() {
	w.T.Helper()
	w.super("set allow_system_table_mods = on")
	var all []string
	for _, table := range tables {
		columns := ask[string](w, `select string_agg(quote_ident(attname), ', ') from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped`, table)
		all = append(all, "delete from "+table, "insert into "+table+" ("+columns+") overriding system value select "+columns+" from backup_"+table)
	}
	w.super(strings.Join(all, ";"))
	if w.hidden { // connections may still hold that the table is without the index; that one goes is told to all
		w.super("drop index audit_events_pkey")
		w.hidden = false
	}
	w.super("create unique index if not exists audit_events_pkey on audit_events (tenant_id, chain_position)")
	if !w.touched {
		return
	}
	w.touched = false
	for _, part := range []string{"objects", "versions", "meta"} {
		require.NoError(w.T, os.RemoveAll(filepath.Join(w.Dir, part, name)))
		w.copyBucket(part+".backup", part)
	}
}

func (w *world) copyBucket(from, to string) {
	w.T.Helper()
	root := filepath.Join(w.Dir, from, name)
	require.NoError(w.T, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == root {
			return nil
		}
		require.NoError(w.T, err)
		target := filepath.Join(w.Dir, to, name, path[len(root):])
		if entry.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		text, err := os.ReadFile(path)
		require.NoError(w.T, err)
		return os.WriteFile(target, text, 0o600)
	}))
}

// file is where the server keeps an object.
func (w *world) file(key string) string {
	w.touched = true
	return filepath.Join(w.Dir, "objects", name, key)
}

// attribute changes what the server knows of an object.
func (w *world) attribute(key, attribute string, change func(map[string]any)) {
	w.T.Helper()
	w.touched = true
	path := filepath.Join(w.Dir, "meta", name, key, "meta", attribute)
	text, err := os.ReadFile(path)
	require.NoError(w.T, err)
	var v map[string]any
	require.NoError(w.T, json.Unmarshal(text, &v))
	change(v)
	text, err = json.Marshal(v)
	require.NoError(w.T, err)
	require.NoError(w.T, os.WriteFile(path, text, 0o600))
}

// overwrite changes an object below the server.
func (w *world) overwrite(key string, change func([]byte) []byte) {
	w.T.Helper()
	text, err := os.ReadFile(w.file(key))
	require.NoError(w.T, err)
	require.NoError(w.T, os.WriteFile(w.file(key), change(text), 0o600))
}

func (w *world) api() *s3.Client {
	w.touched = true
	endpoint := w.Server.Endpoint()
	return s3.New(s3.Options{Region: "us-east-1", BaseEndpoint: &endpoint, UsePathStyle: true, Credentials: credentials.NewStaticCredentialsProvider("root", "root-secret", "")})
}

// edit changes the text of an event; with rechain, all hashes from it on fit again, and so do the writer's own heads.
func (w *world) edit(tenant string, position int, change func(string) string, rechain bool) {
	w.T.Helper()
	text := ask[string](w, `select canonical from audit_events where tenant_id = $1 and chain_position = $2`, tenant, position)
	w.super(`update audit_events set canonical = $3 where tenant_id = $1 and chain_position = $2`, tenant, position, change(text))
	if rechain {
		w.rechain(tenant, position)
	}
}

func (w *world) rechain(tenant string, from int) {
	w.T.Helper()
	prev := audit.Genesis
	if from > 1 {
		prev = ask[string](w, `select event_hash from audit_events where tenant_id = $1 and chain_position = $2`, tenant, from-1)
	}
	length := ask[int](w, `select max(chain_position) from audit_events where tenant_id = $1`, tenant)
	w.super(`alter table audit_events drop constraint if exists audit_events_prev_hash`)
	for i := from; i <= length; i++ {
		text := ask[string](w, `select canonical from audit_events where tenant_id = $1 and chain_position = $2`, tenant, i)
		hash := audit.Hash([]byte(text), prev)
		w.super(`update audit_events set event_hash = $3, prev_hash = $4 where tenant_id = $1 and chain_position = $2`, tenant, i, hash, prev)
		prev = hash
	}
	w.super(`update audit_heads set event_hash = $2, length = $3 where tenant_id = $1`, tenant, prev, length)
}

func renamed(text string) string { return strings.Replace(text, "Ada", "Eve", 1) }

// reseal changes an anchor's header or list and signs it again.
func (w *world) reseal(n uint64, signer sign.Signer, change func(*anchor.Header, []anchor.Tenant)) {
	w.T.Helper()
	w.overwrite(anchor.Key(n), func(text []byte) []byte {
		a, err := anchor.Parse(text)
		require.NoError(w.T, err)
		change(&a.Header, a.Tenants)
		var log merkle.Range
		if n > 1 {
			require.NoError(w.T, log.UnmarshalBinary(ask[[]byte](w, `select log_tree from audit_anchors where number = $1`, n-1)))
		}
		text, err = anchor.Seal(a.Header, a.Tenants, log, func(size uint64, root merkle.Hash) (string, error) {
			return anchor.SignCheckpoint(w.T.Context(), anchor.Checkpoint{Origin: origin, Size: size, Root: root}, signer)
		})
		require.NoError(w.T, err)
		return text
	})
}

func (w *world) unlock(key string) {
	w.T.Helper()
	w.touched = true
	require.NoError(w.T, os.Remove(filepath.Join(w.Dir, "meta", name, key, "meta", "object-retention")))
}

func (w *world) stranger() sign.Signer {
	w.T.Helper()
	s, err := sign.File(filepath.Join(w.T.TempDir(), "stranger.pem"))
	require.NoError(w.T, err)
	return s
}

func ms(d time.Duration) ident.Time { return ident.Time{Time: time.Unix(0, 0).Add(d)} }

// Each check has a case that breaks what it checks, and nothing else finds first.
func TestWhatIsFound(t *testing.T) {
	w := populated(t)
	a := w.Tenants[1]
	third, ninth := w.event(a, 3), w.event(a, 9)
	last := ask[string](w, `select max(tenant_id::text) from audit_heads`)
	beacons := ask[int](w, `select beacon_number from audit_ledger`)
	w.backup()
	set := func(assignment string) func() {
		return func() {
			w.super(`update audit_events set ` + assignment + ` where tenant_id = '` + a + `' and chain_position = 3`)
		}
	}
	retext := func(old, new string) func() {
		return func() { w.edit(a, 3, func(s string) string { return strings.Replace(s, old, new, 1) }, true) }
	}
	third3 := verify.Finding{TenantID: a, EventID: third, Position: 3}
	as := func(class verify.Class) verify.Finding { f := third3; f.Class = class; return f }
	log2 := anchor.EventsKey(a, 2)
	for name, c := range map[string]struct {
		do     func()
		want   []verify.Finding
		config func(*verify.Config)
	}{
		"text edited":            {func() { w.edit(a, 3, renamed, false) }, []verify.Finding{as(verify.HashMismatch)}, nil},
		"text edited, rechained": {func() { w.edit(a, 3, renamed, true) }, []verify.Finding{as(verify.EventChanged), {Class: verify.HeadMismatch, TenantID: a, Cadence: 2}}, nil},
		"hash edited":            {set("event_hash = repeat('0', 64)"), []verify.Finding{as(verify.HashMismatch), {Class: verify.LinkBroken, TenantID: a, Position: 4}, as(verify.EventChanged)}, nil},
		"prev_hash edited":       {set("prev_hash = repeat('0', 64)"), []verify.Finding{as(verify.LinkBroken)}, nil},
		"first is not GENESIS": {func() {
			w.super(`update audit_events set prev_hash = repeat('0', 64) where chain_position = 1 and tenant_id = $1`, a)
		}, []verify.Finding{{Class: verify.LinkBroken, TenantID: a, Position: 1}}, nil},
		"not canonical":         {retext(`{"actor"`, `{ "actor"`), []verify.Finding{as(verify.TextNotCanonical)}, nil},
		"not an envelope":       {retext(`"schema_version":1`, `"schema_version":2`), []verify.Finding{as(verify.EnvelopeInvalid)}, nil},
		"without recorded_at":   {func() { w.edit(a, 3, unrecorded, true) }, []verify.Finding{as(verify.EnvelopeInvalid)}, nil},
		"another tenant's text": {retext(a, w.Tenants[0]), []verify.Finding{as(verify.ForeignTenant)}, nil},
		"another event's text":  {retext(third, ident.New()), []verify.Finding{as(verify.ColumnMismatch)}, nil},
		"column occurred_at":    {set("occurred_at = occurred_at + '1 microsecond'"), []verify.Finding{as(verify.ColumnMismatch)}, nil},
		"column recorded_at":    {set("recorded_at = recorded_at + '1 microsecond'"), []verify.Finding{as(verify.ColumnMismatch)}, nil},
		"column actor":          {set("actor = 'Tester'"), []verify.Finding{as(verify.ColumnMismatch)}, nil},
		"column event_type":     {set("event_type = 'agent.deleted'"), []verify.Finding{as(verify.ColumnMismatch)}, nil},
		"column event_id":       {set("event_id = gen_random_uuid()"), []verify.Finding{{Class: verify.ColumnMismatch, TenantID: a, Position: 3}, {Class: verify.EventLost, EventID: third}}, nil},
		"infinite time":         {set("occurred_at = 'infinity'"), []verify.Finding{as(verify.ColumnMismatch)}, nil},
		"cadence goes back":     {set("cadence = 1"), []verify.Finding{as(verify.CadenceOrder), {Class: verify.HeadMismatch, TenantID: a, Cadence: 1}}, nil},
		"cadence of the future": {set("cadence = 77"), []verify.Finding{as(verify.CadenceOrder)}, nil},
		"deleted":               {func() { w.super(`delete from audit_events where event_id = $1`, third) }, []verify.Finding{{Class: verify.PositionGap, TenantID: a, Position: 3}, as(verify.EventChanged), {Class: verify.EventLost, EventID: third}}, nil},
		"deleted, moved up":     {func() { w.remove(a, 3) }, []verify.Finding{as(verify.EventChanged), {Class: verify.EventLost, EventID: third}, {Class: verify.ChainTruncated}}[:2], nil},
		"end deleted":           {func() { w.super(`delete from audit_events where tenant_id = $1 and chain_position > 6`, a) }, []verify.Finding{{Class: verify.ChainTruncated, TenantID: a, Position: 7}, {Class: verify.EventChanged, TenantID: a, Position: 7}, {Class: verify.HeadDatabase, TenantID: a}, {Class: verify.BeaconTruncated, TenantID: a, Position: 9}}, nil},
		"tenant deleted":        {func() { w.super(`delete from audit_events where tenant_id = $1`, last) }, []verify.Finding{{Class: verify.TenantMissing, TenantID: last}, {Class: verify.EventChanged, TenantID: last, Position: 1}}, nil},
		"first tenant deleted": {func() {
			w.super(`delete from audit_events where tenant_id = (select min(tenant_id::text) from audit_heads)::uuid`)
		}, []verify.Finding{{Class: verify.TenantMissing}}, nil},
		"pending event edited":     {func() { w.edit(a, 9, renamed, true) }, []verify.Finding{{Class: verify.BeaconMismatch, TenantID: a, EventID: ninth, Position: 9}}, nil},
		"pending event deleted":    {func() { w.super(`delete from audit_events where event_id = $1`, ninth) }, []verify.Finding{{Class: verify.BeaconTruncated, TenantID: a, Position: 9}, {Class: verify.EventLost, EventID: ninth}, {Class: verify.HeadDatabase, TenantID: a}}, nil},
		"forged at the end":        {func() { w.forge(a) }, []verify.Finding{{Class: verify.NotEmitted, TenantID: a, Position: 10}}, nil},
		"forged and old":           {func() { w.forge(a) }, []verify.Finding{{Class: verify.BeaconLate, TenantID: a, Position: 10}}, func(c *verify.Config) { c.Now = func() time.Time { return w.Now().Add(3 * time.Minute) } }},
		"position taken twice":     {func() { w.fork(a) }, []verify.Finding{{Class: verify.Fork, TenantID: a, Position: 3}}, nil},
		"event id twice":           {func() { w.replay(third, w.Tenants[2]) }, []verify.Finding{{Class: verify.DuplicateEvent, EventID: third}}, nil},
		"row hidden from an index": {func() { w.hide(a) }, []verify.Finding{{Class: verify.HiddenRow}}, nil},
		"writer's head":            {func() { w.super(`update audit_heads set length = 8 where tenant_id = $1`, a) }, []verify.Finding{{Class: verify.HeadDatabase, TenantID: a}}, nil},
		"writer's head gone":       {func() { w.super(`delete from audit_heads where tenant_id = $1`, last) }, []verify.Finding{{Class: verify.HeadDatabase, TenantID: last}}, nil},
		"writer's head of nobody":  {func() { w.super(`insert into audit_heads values (gen_random_uuid(), 1, repeat('0', 64), now(), 1)`) }, []verify.Finding{{Class: verify.HeadDatabase}}, nil},
		"anchored state":           {func() { w.super(`update audit_anchored_heads set tree = '' where tenant_id = $1`, a) }, []verify.Finding{{Class: verify.HeadDatabase, TenantID: a}}, nil},
		"anchored state gone":      {func() { w.super(`delete from audit_anchored_heads where tenant_id = $1`, last) }, []verify.Finding{{Class: verify.HeadDatabase, TenantID: last}}, nil},
		"anchor's row":             {func() { w.super(`update audit_anchors set object_sha256 = repeat('0', 64) where number = 2`) }, []verify.Finding{{Class: verify.AnchorDatabase, Cadence: 2}}, nil},
		"anchor's header":          {func() { w.super(`update audit_anchors set header_sha256 = repeat('0', 64) where number = 2`) }, []verify.Finding{{Class: verify.AnchorDatabase, Cadence: 2}}, nil},
		"anchor's time":            {func() { w.super(`update audit_anchors set recorded_at = recorded_at + '1 s' where number = 2`) }, []verify.Finding{{Class: verify.AnchorDatabase, Cadence: 2}}, nil},
		"anchor's row unpublished": {func() { w.super(`update audit_anchors set anchored_at = null where number = 2`) }, []verify.Finding{{Class: verify.AnchorDatabase, Cadence: 2}}, nil},
		"anchor's row gone":        {func() { w.super(`delete from audit_anchors where number >= 3`) }, []verify.Finding{{Class: verify.AnchorDatabase, Cadence: 3}, {Class: verify.AnchorDatabase, Cadence: 4}}, nil},
		"state of the log":         {func() { w.super(`update audit_anchors set log_tree = '' where number = 4`) }, []verify.Finding{{Class: verify.AnchorDatabase, Cadence: 4}}, nil},
		"newest anchor gone":       {func() { require.NoError(t, os.Remove(w.file(anchor.Key(4)))) }, []verify.Finding{{Class: verify.AnchorDatabase, Cadence: 4}}, nil},
		"anchor gone":              {func() { require.NoError(t, os.Remove(w.file(anchor.Key(2)))) }, []verify.Finding{{Class: verify.AnchorMissing, Cadence: 2}}, nil},
		"anchor is none":           {func() { w.overwrite(anchor.Key(2), func(b []byte) []byte { return append(b, '\n') }) }, []verify.Finding{{Class: verify.AnchorInvalid, Cadence: 2}, {Class: verify.AnchorChain, Cadence: 3}, {Class: verify.AnchorDatabase}}[:2], nil},
		"anchor of another number": {func() {
			w.overwrite(anchor.Key(2), func([]byte) []byte { b, _ := os.ReadFile(w.file(anchor.Key(3))); return b })
		}, []verify.Finding{{Class: verify.AnchorInvalid, Cadence: 2}}, nil},
		"anchor of a stranger": {func() { w.reseal(4, w.stranger(), func(*anchor.Header, []anchor.Tenant) {}) }, []verify.Finding{{Class: verify.AnchorSignature, Cadence: 4}, {Class: verify.AnchorDatabase, Cadence: 4}}, nil},
		"anchor not the next": {func() {
			w.reseal(4, w.Signer, func(h *anchor.Header, _ []anchor.Tenant) { h.Previous = strings.Repeat("0", 64) })
		}, []verify.Finding{{Class: verify.AnchorChain, Cadence: 4}}, nil},
		"gap between windows": {func() {
			w.reseal(4, w.Signer, func(h *anchor.Header, _ []anchor.Tenant) { h.Window.From = later(h.Window.From, time.Minute) })
		}, []verify.Finding{{Class: verify.AnchorWindow, Cadence: 4}}, nil},
		"windows overlap": {func() {
			w.reseal(4, w.Signer, func(h *anchor.Header, _ []anchor.Tenant) { h.Window.From = later(h.Window.From, -time.Minute) })
		}, []verify.Finding{{Class: verify.AnchorWindow, Cadence: 4}}, nil},
		"writer's clock set back": {func() {
			w.reseal(4, w.Signer, func(h *anchor.Header, _ []anchor.Tenant) { h.RecordedAt = later(h.RecordedAt, -time.Hour) })
		}, []verify.Finding{{Class: verify.AnchorWindow, Cadence: 4}}, nil},
		"log of anchors": {func() {
			w.reseal(2, w.Signer, func(h *anchor.Header, _ []anchor.Tenant) { h.RecordedAt = later(h.RecordedAt, time.Microsecond) })
		}, []verify.Finding{{Class: verify.AnchorLog, Cadence: 3}, {Class: verify.AnchorChain, Cadence: 3}}, nil},
		"tenant shrank":            {func() { w.reseal(4, w.Signer, func(_ *anchor.Header, l []anchor.Tenant) { l[0].Length = 1 }) }, []verify.Finding{{Class: verify.AnchorShrunk, Cadence: 4}}, nil},
		"side tree":                {func() { w.reseal(4, w.Signer, func(_ *anchor.Header, l []anchor.Tenant) { l[0].TreeRoot[0] ^= 1 }) }, []verify.Finding{{Class: verify.TreeMismatch, Cadence: 4}}, nil},
		"anchors have stopped":     {func() {}, []verify.Finding{{Class: verify.AnchorLate, Cadence: 4}}, func(c *verify.Config) { c.Now = func() time.Time { return w.Now().Add(3 * interval) } }},
		"two versions":             {func() { w.put(anchor.Key(3), "again") }, []verify.Finding{{Class: verify.ObjectReplaced, Key: anchor.Key(3)}}, nil},
		"two versions of a beacon": {func() { w.put(anchor.BeaconKey(1), "again") }, []verify.Finding{{Class: verify.ObjectReplaced, Key: anchor.BeaconKey(1)}}, nil},
		"delete marker":            {func() { w.deleteKey(log2) }, []verify.Finding{{Class: verify.ObjectHidden, Key: log2}}, nil},
		"stray object":             {func() { w.put("anchors/notes.txt", "x"); w.put("heads/x", "x"); w.put("events/x", "x") }, []verify.Finding{{Class: verify.ObjectUnexpected, Key: "anchors/notes.txt"}, {Class: verify.ObjectUnexpected, Key: "heads/x"}, {Class: verify.ObjectUnexpected, Key: "events/x"}}, nil},
		"lock that can be lifted":  {func() { w.attribute(log2, "object-retention", func(v map[string]any) { v["Mode"] = "GOVERNANCE" }) }, []verify.Finding{{Class: verify.LockMode, Key: log2}}, nil},
		"no lock":                  {func() { w.unlock(anchor.BeaconKey(2)) }, []verify.Finding{{Class: verify.LockMode, Key: anchor.BeaconKey(2)}}, nil},
		"lock too short": {func() {
			w.attribute(anchor.Key(1), "object-retention", func(v map[string]any) { v["RetainUntilDate"] = time.Now().Add(24 * time.Hour) })
		}, []verify.Finding{{Class: verify.Retention, Key: anchor.Key(1)}}, nil},
		"floor too high":       {func() {}, []verify.Finding{{Class: verify.Retention, Key: anchor.Key(1)}}, func(c *verify.Config) { c.RetentionFloor = 500 * 24 * time.Hour }},
		"clocks differ":        {func() {}, []verify.Finding{{Class: verify.Clock, Key: anchor.Key(1)}, {Class: verify.Clock, Key: anchor.BeaconKey(1)}}, func(c *verify.Config) { c.ClockTolerance = time.Minute }},
		"log edited":           {func() { w.overwrite(log2, func(b []byte) []byte { return []byte(renamed(string(b))) }) }, []verify.Finding{{Class: verify.LogMismatch, TenantID: a, Key: log2, Cadence: 2}}, nil},
		"log cut":              {func() { w.overwrite(log2, func(b []byte) []byte { return b[:len(b)-1] }) }, []verify.Finding{{Class: verify.LogMismatch, Key: log2}}, nil},
		"log gone":             {func() { require.NoError(t, os.Remove(w.file(log2))) }, []verify.Finding{{Class: verify.LogMissing, TenantID: a, Key: log2}}, nil},
		"log of nobody":        {func() { w.put(anchor.EventsKey(ident.New(), 2), "{}\n") }, []verify.Finding{{Class: verify.LogMismatch}}, nil},
		"log too many":         {func() { w.put(anchor.EventsKey(a, 0+4)+"x", "{}\n") }, []verify.Finding{{Class: verify.ObjectUnexpected}}, nil},
		"beacon gone":          {func() { require.NoError(t, os.Remove(w.file(anchor.BeaconKey(2)))) }, []verify.Finding{{Class: verify.BeaconMissing, Key: anchor.BeaconKey(2)}}, nil},
		"newest beacon gone":   {func() { require.NoError(t, os.Remove(w.file(anchor.BeaconKey(uint64(beacons))))) }, []verify.Finding{{Class: verify.BeaconMissing}}, nil},
		"beacon is none":       {func() { w.overwrite(anchor.BeaconKey(2), func(b []byte) []byte { return b[1:] }) }, []verify.Finding{{Class: verify.BeaconInvalid, Key: anchor.BeaconKey(2)}, {Class: verify.BeaconChain, Key: anchor.BeaconKey(3)}}, nil},
		"beacon of a stranger": {func() { w.rebeacon(uint64(beacons), w.stranger(), func(*anchor.Beacon) {}) }, []verify.Finding{{Class: verify.BeaconSignature, Key: anchor.BeaconKey(uint64(beacons))}}, nil},
		"beacon not the next": {func() {
			w.rebeacon(uint64(beacons), w.Signer, func(b *anchor.Beacon) { b.Previous = strings.Repeat("0", 64) })
		}, []verify.Finding{{Class: verify.BeaconChain}}, nil},
		"beacon from before": {func() {
			w.rebeacon(uint64(beacons), w.Signer, func(b *anchor.Beacon) { b.RecordedAt = ms(0); b.Cadence = 1 })
		}, []verify.Finding{{Class: verify.BeaconChain}}, nil},
		"beacon that takes back":    {func() { w.rebeacon(uint64(beacons), w.Signer, func(b *anchor.Beacon) { b.Tenants[0].Length = 1 }) }, []verify.Finding{{Class: verify.BeaconChain}}, nil},
		"beacon of a later cadence": {func() { w.rebeacon(uint64(beacons), w.Signer, func(b *anchor.Beacon) { b.Cadence = 9 }) }, []verify.Finding{{Class: verify.AnchorMissing, Cadence: 5}}, nil},
		"quarantined": {func() {
			w.super(`update audit_outbox set state = 'quarantined', reason = 'for a test' where event_id = $1`, ninth)
		}, []verify.Finding{{Class: verify.Quarantined, EventID: ninth}, {Class: verify.NotEmitted, EventID: ninth}}, nil},
		"outbox row gone":          {func() { w.super(`delete from audit_outbox where event_id = $1`, third) }, []verify.Finding{as(verify.NotEmitted)}, nil},
		"receipt of another text":  {func() { w.edit(a, 9, renamed, true) }, []verify.Finding{{Class: verify.ReceiptMismatch, TenantID: a, EventID: ninth, Position: 9}}, func(c *verify.Config) { c.Receipts, c.EmissionKey = w.Kept, emission }},
		"receipt without an event": {func() { w.super(`delete from audit_events where event_id = $1`, ninth) }, []verify.Finding{{Class: verify.ReceiptMissing, TenantID: a, EventID: ninth}}, func(c *verify.Config) { c.Receipts = w.Kept }},
		"receipt without a trace": {func() {
			w.super(`delete from audit_events where event_id = $1`, ninth)
			w.super(`delete from audit_outbox where event_id = $1`, ninth)
		}, []verify.Finding{{Class: verify.ReceiptMissing, EventID: ninth}}, func(c *verify.Config) { c.Receipts = w.Kept }},
		"MAC of another text": {func() { w.edit(a, 9, renamed, true) }, []verify.Finding{{Class: verify.MACMismatch, TenantID: a, EventID: ninth, Position: 9}}, func(c *verify.Config) { c.Database, c.EmissionKey = w.DB.SuperURL, emission }},
		"without a witness":   {func() {}, []verify.Finding{{Class: verify.Unwitnessed, Cadence: 1}}, func(c *verify.Config) { c.WitnessKeys = someWitness(t) }},
	} {
		t.Run(name, func(t *testing.T) {
			defer func(outer testing.TB) { w.T = outer }(w.T)
			w.T = t
			c.do()
			defer w.restore()
			r := w.verify(func(cfg *verify.Config) {
				cfg.Workers = 1
				if c.config != nil {
					c.config(cfg)
				}
			})
			require.False(t, r.OK())
			for _, want := range c.want {
				requireFound(t, r, want)
			}
		})
	}
	requireClean(t, w.verify())
}

func unrecorded(text string) string {
	pending, err := audit.Pending(nil, []byte(text))
	if err != nil {
		panic(err)
	}
	return string(pending)
}

func later(t ident.Time, d time.Duration) ident.Time { return ident.Time{Time: t.Add(d)} }

// remove takes an event out and moves the rest up, with hashes that fit.
func (w *world) remove(tenant string, position int) {
	w.T.Helper()
	w.super(`delete from audit_events where tenant_id = $1 and chain_position = $2`, tenant, position)
	w.super(`update audit_events set chain_position = chain_position + 1000000 where tenant_id = $1 and chain_position > $2`, tenant, position)
	w.super(`update audit_events set chain_position = chain_position - 1000001 where tenant_id = $1 and chain_position > 1000000`, tenant)
	w.rechain(tenant, position)
}

// forge appends an event that nobody emitted.
func (w *world) forge(tenant string) {
	w.T.Helper()
	w.super(`insert into audit_events select tenant_id, chain_position + 1, gen_random_uuid(), occurred_at, recorded_at, actor, event_type, encode(sha256('forged'), 'hex'), event_hash, cadence, canonical
		from audit_events where tenant_id = $1 order by chain_position desc limit 1`, tenant)
	id, text := ident.New(), ask[string](w, `select canonical from audit_events where tenant_id = $1 and chain_position = 9`, tenant)
	text = strings.Replace(text, w.event(tenant, 9), id, 1)
	w.super(`update audit_events set event_id = $2, canonical = $3 where tenant_id = $1 and chain_position = 10`, tenant, id, text)
	w.rechain(tenant, 10)
}

// fork puts a second event at a position, past the indexes.
func (w *world) fork(tenant string) {
	w.T.Helper()
	w.super(`alter table audit_events drop constraint if exists audit_events_pkey, drop constraint if exists audit_events_event_id, drop constraint if exists audit_events_event_hash, drop constraint if exists audit_events_prev_hash`)
	w.super(`drop index if exists audit_events_pkey`)
	w.super(`insert into audit_events select * from audit_events where tenant_id = $1 and chain_position = 3`, tenant)
}

// replay records an event under another tenant, too.
func (w *world) replay(event, tenant string) {
	w.T.Helper()
	w.super(`alter table audit_events drop constraint if exists audit_events_event_id`)
	w.forge(tenant)
	forged := w.event(tenant, 10)
	w.super(`update audit_events set event_id = $2, canonical = replace(canonical, $3, $4) where tenant_id = $1 and chain_position = 10`, tenant, event, forged, event)
	w.rechain(tenant, 10)
}

// hide adds a row that the index by which chains are read does not have.
func (w *world) hide(tenant string) {
	w.T.Helper()
	w.super(`alter table audit_events drop constraint if exists audit_events_pkey, drop constraint if exists audit_events_event_id, drop constraint if exists audit_events_event_hash, drop constraint if exists audit_events_prev_hash`)
	w.super(`drop index if exists audit_events_pkey`)
	w.super(`create unique index audit_events_pkey on audit_events (tenant_id, chain_position)`)
	w.hidden = true
	w.super(`update pg_index set indislive = false, indisready = false where indexrelid = 'audit_events_pkey'::regclass`)
	w.super(`insert into audit_events select * from audit_events where tenant_id = $1 and chain_position = 3`, tenant)
	w.super(`update pg_index set indislive = true, indisready = true where indexrelid = 'audit_events_pkey'::regclass`)
}

func (w *world) put(key, text string) {
	w.T.Helper()
	w.touched = true
	_, err := w.Bucket.Put(w.T.Context(), key, strings.NewReader(text), object.PutOptions{RetainUntil: time.Now().Add(400 * 24 * time.Hour)})
	require.NoError(w.T, err)
}

func (w *world) deleteKey(key string) {
	w.T.Helper()
	bucket := name
	_, err := w.api().DeleteObject(w.T.Context(), &s3.DeleteObjectInput{Bucket: &bucket, Key: &key})
	require.NoError(w.T, err)
}

// rebeacon changes a beacon and signs it again.
func (w *world) rebeacon(n uint64, signer sign.Signer, change func(*anchor.Beacon)) {
	w.T.Helper()
	w.overwrite(anchor.BeaconKey(n), func(text []byte) []byte {
		b, err := anchor.OpenBeacon(text, w.Keys())
		require.NoError(w.T, err)
		change(&b)
		text, err = anchor.SealBeacon(w.T.Context(), b, signer)
		require.NoError(w.T, err)
		return text
	})
}
