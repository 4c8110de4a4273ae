package tamper_test

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/agentplatform/agentplatform/pkg/sign"
)

// forgery is a bucket that fits a database whose chains were changed: what the writer would have written, had it been so from the start.
type forgery struct {
	t       testing.TB
	world   *world
	admin   administrator
	signer  sign.Signer
	chains  map[string][]row
	was     map[string][]byte // every object, by key
	is      map[string][]byte
	anchors []forged
	beacon  []byte // the last one
	beacons uint64
}

type forged struct {
	sha256, header string
	log            []byte
	events         uint64
	tenants        uint64
}

// forge writes the bucket anew for the chains in the database, and what the database says of it; signed by whatever key its forger has.
// Nothing is written to the bucket: is what ought to be there. Times, windows and numbers stay as they were.
func (w *world) forge(t testing.TB, a administrator, signer sign.Signer) *forgery {
	t.Helper()
	f := &forgery{t: t, world: w, admin: a, signer: signer, chains: a.chains(), was: w.objects(t), is: map[string][]byte{}}
	f.logs()
	f.sealAnchors()
	f.sealBeacons()
	for i, made := range f.anchors {
		a.exec("update audit_anchors set object_sha256 = $2, header_sha256 = $3, log_tree = $4, events = $5, tenants = $6, witnessed = false where number = $1",
			i+1, made.sha256, made.header, made.log, made.events, made.tenants)
	}
	a.exec("update audit_ledger set beacon_number = $1, beacon_sha256 = $2", f.beacons, anchor.SHA256(f.beacon))
	return f
}

// objects is all that is in the bucket.
func (w *world) objects(t testing.TB) map[string][]byte {
	t.Helper()
	all, b := map[string][]byte{}, w.as(root, w.bucket)
	for o, err := range b.List(t.Context(), "", "") {
		require.NoError(t, err)
		text, err := b.Get(t.Context(), o.Key, 1<<20)
		require.NoError(t, err)
		all[o.Key] = text
	}
	return all
}

func (f *forgery) logs() {
	last := f.admin.anchored()
	for tenant, rows := range f.chains {
		for _, r := range rows {
			if r.Cadence <= last {
				key := anchor.EventsKey(tenant, uint64(r.Cadence))
				f.is[key] = append(append(f.is[key], r.Text...), '\n')
			}
		}
	}
}

func (f *forgery) sealAnchors() {
	var log merkle.Range
	previous := anchor.Genesis
	for n := uint64(1); f.was[anchor.Key(n)] != nil; n++ {
		old, err := anchor.Parse(f.was[anchor.Key(n)])
		require.NoError(f.t, err)
		old.Header.Previous = previous
		if w := f.world; w.headers != nil {
			w.headers(&old.Header)
		}
		text, err := anchor.Seal(old.Header, f.tenants(n), log, func(size uint64, root merkle.Hash) (string, error) {
			return anchor.SignCheckpoint(f.t.Context(), anchor.Checkpoint{Origin: origin, Size: size, Root: root}, f.signer)
		})
		require.NoError(f.t, err)
		made, err := anchor.Parse(text)
		require.NoError(f.t, err)
		if made.HeaderSHA256 == old.HeaderSHA256 && f.signer == f.world.signer {
			text = f.was[anchor.Key(n)] // nothing before the lie changes
		}
		log.Append(anchor.LogLeaf(made.HeaderSHA256))
		state, err := log.MarshalBinary()
		require.NoError(f.t, err)
		previous = anchor.SHA256(text)
		f.anchors = append(f.anchors, forged{previous, hex.EncodeToString(made.HeaderSHA256[:]), state, made.Header.Events, made.Header.TenantCount})
		f.is[anchor.Key(n)] = text
	}
}

// tenants are the heads at cadence n.
func (f *forgery) tenants(n uint64) (list []anchor.Tenant) {
	for _, tenant := range where(f.chains, func([]row) bool { return true }) {
		var tree merkle.Range
		t := anchor.Tenant{TenantID: tenant}
		for _, r := range f.chains[tenant] {
			if uint64(r.Cadence) <= n {
				tree.Append(leaf(f.t, r))
				t.Length, t.EventHash = uint64(r.Position), hash(f.t, r)
			}
		}
		if t.TreeRoot = tree.Root(); t.Length > 0 {
			list = append(list, t)
		}
	}
	return list
}

func (f *forgery) sealBeacons() {
	previous := anchor.Genesis
	for n := uint64(1); f.was[anchor.BeaconKey(n)] != nil; n++ {
		old, err := anchor.OpenBeacon(f.was[anchor.BeaconKey(n)], f.world.keys(f.t))
		require.NoError(f.t, err)
		changed := old.Previous != previous
		old.Previous = previous
		old.Tenants = slices.DeleteFunc(old.Tenants, func(h anchor.Head) bool { return len(f.chains[h.TenantID]) == 0 })
		for i, h := range old.Tenants {
			rows := f.chains[h.TenantID]
			length := h.Length
			if len(rows) != f.world.lengths[h.TenantID] { // it was cut or lengthened: as far as it was then
				length = 0
				for _, r := range rows {
					if !r.Recorded.After(old.RecordedAt.Time) {
						length++
					}
				}
			}
			now := anchor.Head{TenantID: h.TenantID, Length: length, EventHash: hash(f.t, rows[length-1])}
			changed = changed || now != h
			old.Tenants[i] = now
		}
		text := f.was[anchor.BeaconKey(n)]
		if changed || f.signer != f.world.signer {
			text, err = anchor.SealBeacon(f.t.Context(), old, f.signer)
			require.NoError(f.t, err)
		}
		previous, f.beacon, f.beacons = anchor.SHA256(text), text, n
		f.is[anchor.BeaconKey(n)] = text
	}
}

// changed are the keys of what is other than it was, in order.
func (f *forgery) changed() (keys []string) {
	for key, text := range f.is {
		if !bytes.Equal(text, f.was[key]) {
			keys = append(keys, key)
		}
	}
	for key := range f.was {
		if f.is[key] == nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// intoFolder puts the forgery below the server, where neither versions nor locks are kept: what only the storage's owner could do.
func (f *forgery) intoFolder() {
	for _, key := range f.changed() {
		switch text := f.is[key]; {
		case text == nil:
			f.world.removeFile(f.t, key)
		case f.was[key] == nil:
			_, err := f.world.as(root, f.world.bucket).Put(f.t.Context(), key, bytes.NewReader(text), object.PutOptions{RetainUntil: f.world.clock.read().Add(retention)})
			require.NoError(f.t, err)
		default:
			f.world.replaceFile(f.t, key, text)
		}
	}
}

// overAPI writes the forgery as the bucket's administrator can: as newer versions, locked like the first.
func (f *forgery) overAPI() {
	for _, key := range f.changed() {
		if f.is[key] == nil {
			_, err := f.world.api.DeleteObject(f.t.Context(), &s3.DeleteObjectInput{Bucket: aws.String(f.world.bucket), Key: aws.String(key)})
			require.NoError(f.t, err)
			continue
		}
		_, err := f.world.as(root, f.world.bucket).Put(f.t.Context(), key, bytes.NewReader(f.is[key]), object.PutOptions{ContentType: "application/json", RetainUntil: time.Now().Add(retention)})
		require.NoError(f.t, err)
	}
}

// file and attributes are where the server keeps an object and what it says of it.
func (w *world) file(key string) string { return filepath.Join(w.folders(w.bucket)[0], key) }
func (w *world) attributes(key string) string {
	return filepath.Join(w.folders(w.bucket)[2], key, "meta")
}

func (w *world) removeFile(t testing.TB, key string) {
	t.Helper()
	require.NoError(t, os.Remove(w.file(key)))
	require.NoError(t, os.RemoveAll(w.attributes(key)))
}

// replaceFile changes an object in place, with its checksums, and leaves its version, lock and time.
func (w *world) replaceFile(t testing.TB, key string, text []byte) {
	t.Helper()
	st, err := os.Stat(w.file(key))
	require.NoError(t, err)
	replace(t, w.file(key), text)
	require.NoError(t, os.Chtimes(w.file(key), st.ModTime(), st.ModTime()))
	etag, sum := md5.Sum(text), sha256.Sum256(text)
	replace(t, filepath.Join(w.attributes(key), "etag"), []byte(`"`+hex.EncodeToString(etag[:])+`"`))
	w.attribute(t, key, "checksums", func(v map[string]any) {
		if v["SHA256"] != nil {
			v["SHA256"] = base64.StdEncoding.EncodeToString(sum[:])
		}
	})
}

// attribute changes what the server has written down of an object.
func (w *world) attribute(t testing.TB, key, name string, change func(map[string]any)) {
	t.Helper()
	path := filepath.Join(w.attributes(key), name)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var v map[string]any
	require.NoError(t, json.Unmarshal(text, &v))
	change(v)
	text, err = json.Marshal(v)
	require.NoError(t, err)
	replace(t, path, text)
}

func hash(t testing.TB, r row) merkle.Hash {
	t.Helper()
	sum, err := hex.DecodeString(r.Hash)
	require.NoError(t, err)
	return merkle.Hash(sum)
}

func leaf(t testing.TB, r row) merkle.Hash {
	t.Helper()
	return anchor.EventLeaf(hash(t, r))
}
