package export

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/object"
)

// scope is what an export is a picture of: the chains of its tenants as they were when its first run began.
type scope struct {
	asOf    ident.Time
	heads   []anchor.Head // ascending by tenant
	lengths map[string]uint64
}

// maxScope bounds the object that holds a scope: some 400,000 tenants.
const maxScope = 64 << 20

// stored is a scope as it lies beside the file.
type stored struct {
	AsOf  ident.Time   `json:"as_of"`
	Heads []storedHead `json:"heads"`
}

type storedHead struct {
	TenantID  string `json:"tenant_id"`
	Length    uint64 `json:"length"`
	EventHash string `json:"event_hash"`
}

// scope is the job's: the first run that writes it decides for all.
func (r *Runner) scope(ctx context.Context, j *job) (scope, error) {
	key := j.key() + ".heads.json"
	text, err := r.Bucket.Get(ctx, key, maxScope)
	if fault.IsMissing(err) {
		if text, err = r.heads(ctx, j); err != nil {
			return scope{}, err
		}
		_, err = r.Bucket.Put(ctx, key, bytes.NewReader(text), object.PutOptions{ContentType: "application/json", IfNoneMatch: true})
		if errors.Is(err, object.ErrExists) {
			text, err = r.Bucket.Get(ctx, key, maxScope)
		}
		r.signal("scope written")
	}
	if err != nil {
		return scope{}, errors.New("export: " + err.Error()) // what is missing in the bucket is not the job's fault
	}
	return parseScope(text)
}

// heads are the heads of the tenants in the filter, now, as text.
func (r *Runner) heads(ctx context.Context, j *job) ([]byte, error) {
	s := stored{AsOf: ident.Now()}
	err := r.Reader.Unbound(ctx, func(tx pgx.Tx) error {
		s.Heads = []storedHead{}
		rows, err := tx.Query(ctx, `select tenant_id::text, length, event_hash from audit_heads where $1::uuid is null or tenant_id = $1 order by tenant_id`, j.filter.TenantID)
		if err != nil {
			return err
		}
		var h storedHead
		_, err = pgx.ForEachRow(rows, []any{&h.TenantID, &h.Length, &h.EventHash}, func() error {
			s.Heads = append(s.Heads, h)
			return nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(s)
}

func parseScope(text []byte) (scope, error) {
	var in stored
	if err := json.Unmarshal(text, &in); err != nil {
		return scope{}, fmt.Errorf("export: heads: %w", err)
	}
	s := scope{asOf: in.AsOf, heads: make([]anchor.Head, len(in.Heads)), lengths: make(map[string]uint64, len(in.Heads))}
	for i, h := range in.Heads {
		b, err := hex.DecodeString(h.EventHash)
		if err != nil || len(b) != len(s.heads[i].EventHash) {
			return scope{}, fmt.Errorf("export: heads: %q is not a hash", h.EventHash)
		}
		s.heads[i] = anchor.Head{TenantID: h.TenantID, Length: h.Length, EventHash: [32]byte(b)}
		s.lengths[h.TenantID] = h.Length
	}
	return s, nil
}
