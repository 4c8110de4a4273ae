package export

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
	"github.com/agentplatform/agentplatform/pkg/audit/trail"
	"github.com/agentplatform/agentplatform/pkg/object"
)

// write makes the file, its manifest and the job's end.
func (r *Runner) write(ctx context.Context, j *job) error {
	s, err := r.scope(ctx, j)
	if err != nil {
		return err
	}
	err = r.file(ctx, j, s)
	if errors.Is(err, object.ErrNoUpload) { // the storage dropped it: nothing of the file is left
		j.progress = progress{Lease: j.Lease}
		if err = r.save(ctx, j); err == nil {
			err = r.file(ctx, j, s)
		}
	}
	if err != nil {
		return err
	}
	r.signal("file complete")
	if err := r.manifest(ctx, j, s); err != nil {
		return err
	}
	r.signal("manifest written")
	return r.owned(ctx, j, `status = 'Complete', finished_at = clock_timestamp(), lease_until = null, progress = null, rows = $3, bytes = $4, sha256 = $5`,
		j.Rows, j.Bytes, j.SHA256)
}

func (r *Runner) file(ctx context.Context, j *job, s scope) error {
	if !j.Whole {
		w, err := r.writer(ctx, j)
		if err != nil {
			return err
		}
		if err := r.rows(ctx, w, s); err != nil {
			return err
		}
		if err := w.end(ctx); err != nil {
			return err
		}
	}
	return r.complete(ctx, j)
}

// rows writes all events behind those that are written.
func (r *Runner) rows(ctx context.Context, w *writer, s scope) error {
	batch := cmp.Or(r.Batch, 5000)
	for read := batch; read == batch; {
		if r.late(ctx) {
			return errLater
		}
		err := r.Reader.Unbound(ctx, func(tx pgx.Tx) error {
			read = 0 // a transaction that is run again goes on behind the last event that was taken
			for e, err := range trail.List(ctx, tx, w.job.filter, w.after, batch) {
				if err != nil {
					return err
				}
				read++
				if err := w.take(ctx, &e, s); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// complete makes the object out of its parts.
func (r *Runner) complete(ctx context.Context, j *job) error {
	if j.Upload == "" {
		return nil
	}
	upload := r.Bucket.ResumeUpload(j.key(), j.Upload)
	parts, err := upload.Parts(ctx)
	if err == nil {
		parts = parts[:min(len(parts), int(j.Parts))]
		var size int64
		for _, p := range parts {
			size += p.Size
		}
		if len(parts) != int(j.Parts) || size != j.Bytes {
			return fmt.Errorf("export: the storage has %d parts with %d bytes instead of %d with %d", len(parts), size, j.Parts, j.Bytes)
		}
		err = upload.Complete(ctx, parts)
	}
	if !errors.Is(err, object.ErrNoUpload) {
		return err
	}
	for o, listed := range r.Bucket.List(ctx, j.key(), "") { // a run before this one may have completed it
		if listed != nil {
			return listed
		}
		if o.Key == j.key() && o.Size == j.Bytes {
			return nil
		}
		break
	}
	return err
}

// manifest signs what the file is, beside it.
func (r *Runner) manifest(ctx context.Context, j *job, s scope) error {
	filter, err := j.filter.Canonical()
	if err != nil {
		return err
	}
	m := anchor.Manifest{Bytes: uint64(j.Bytes), CreatedAt: s.asOf, Filter: filter, Format: string(j.format), Heads: s.heads, JobID: j.id, Key: j.key(), Rows: uint64(j.Rows)}
	if m.SHA256, err = parseHash(j.SHA256); err != nil {
		return err
	}
	sealed, err := anchor.SealManifest(ctx, m, r.Sign)
	if err != nil {
		return err
	}
	_, err = r.Bucket.Put(ctx, anchor.ManifestKey(j.key()), bytes.NewReader(sealed), object.PutOptions{ContentType: "application/json"})
	return err
}

// late reports whether there is not time enough for another batch or part.
func (r *Runner) late(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < cmp.Or(r.Margin, time.Minute)
}

func parseHash(text string) (h merkle.Hash, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(h) {
		return h, fmt.Errorf("export: %q is not a hash", text)
	}
	return merkle.Hash(b), nil
}
