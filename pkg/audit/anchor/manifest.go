package anchor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/agentplatform/agentplatform/pkg/audit/canonical"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// Manifest says what an export holds and as of which heads: {"manifest":M,"signature":"…"}, stored beside the file as
// ManifestKey(key).
type Manifest struct {
	Bytes     uint64 // of the file
	CreatedAt ident.Time
	Filter    canonical.Raw // the export's filter: a canonical object
	Format    string        // CSV or NDJSON
	Heads     []Head        // of the tenants exported when it began, ascending by the bytes of their id; none: []
	JobID     string        // UUID
	Key       string        // of the file in its bucket
	Rows      uint64        // events in the file
	SHA256    merkle.Hash   // of the file
}

// ManifestKey is where the manifest of the file at key is stored.
func ManifestKey(key string) string { return key + ".manifest.json" }

func (m Manifest) append(dst []byte) ([]byte, error) {
	dst = strconv.AppendUint(append(dst, `{"bytes":`...), m.Bytes, 10)
	dst = appendTime(append(dst, `,"created_at":`...), m.CreatedAt)
	dst = append(append(dst, `,"filter":`...), m.Filter...)
	dst = append(append(dst, `,"format":"`...), m.Format...)
	dst = appendHeads(append(dst, `","heads":`...), m.Heads)
	dst = append(append(dst, `,"job_id":"`...), m.JobID...)
	dst, err := canonical.AppendString(append(dst, `","key":`...), m.Key)
	if err != nil {
		return nil, err
	}
	dst = strconv.AppendUint(append(dst, `,"rows":`...), m.Rows, 10)
	return append(appendHash(append(dst, `,"schema_version":1,"sha256":`...), m.SHA256), '}'), nil
}

func (m Manifest) check() error {
	filter := &cursor{text: m.Filter}
	filter.object()
	switch {
	case m.Bytes > canonical.MaxInteger || m.Rows > canonical.MaxInteger:
		return errors.New("counts that no text holds")
	case filter.end() != nil:
		return fmt.Errorf("filter: %w", filter.end())
	case !slices.Contains([]string{"CSV", "NDJSON"}, m.Format):
		return errors.New("format: neither CSV nor NDJSON")
	case !ident.Valid(m.JobID):
		return errors.New("job_id: not an id")
	case !writable(m.CreatedAt):
		return errors.New("a time that has no text")
	}
	return inOrder(m.Heads, func(h Head) (string, uint64) { return h.TenantID, h.Length })
}

// SealManifest signs the manifest.
func SealManifest(ctx context.Context, m Manifest, key Signer) (object []byte, err error) {
	if err = m.check(); err != nil {
		return nil, fmt.Errorf("anchor: manifest: %w", err)
	}
	text, err := m.append(nil)
	if err == nil {
		object, err = seal(ctx, "manifest", text, key)
	}
	if err != nil {
		return nil, fmt.Errorf("anchor: manifest: %w", err)
	}
	return object, nil
}

// OpenManifest reads a manifest: exactly the bytes that SealManifest writes, signed by one of keys, which are the log's;
// else it is ErrSignature, and the manifest comes along for who wants to say what it claims.
func OpenManifest(object []byte, keys []Verifier) (Manifest, error) {
	var m Manifest
	c := &cursor{text: object}
	c.literal(`{"manifest":`)
	start := c.at
	c.literal(`{"bytes":`)
	m.Bytes = c.uint()
	c.literal(`,"created_at":`)
	m.CreatedAt = c.time()
	c.literal(`,"filter":`)
	m.Filter = c.object()
	c.literal(`,"format":`)
	m.Format = c.plain(6)
	c.literal(`,"heads":`)
	m.Heads = c.heads()
	c.literal(`,"job_id":`)
	m.JobID = c.plain(36)
	c.literal(`,"key":`)
	m.Key = c.string()
	c.literal(`,"rows":`)
	m.Rows = c.uint()
	c.literal(`,"schema_version":1,"sha256":`)
	m.SHA256 = c.hash()
	c.literal(`}`)
	digest, sig := c.signature(start)
	err := c.end()
	if err == nil {
		err = m.check()
	}
	if err != nil {
		return Manifest{}, fmt.Errorf("anchor: manifest: %w", err)
	}
	return m, signedByOne(digest, sig, keys)
}
