package export

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"hash"

	"github.com/agentplatform/agentplatform/pkg/audit/trail"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/object"
)

// grown is after how many parts their size doubles, so that the largest number of them holds some 300 GB.
const grown = 2500

// writer turns events into a file. What is flushed is in the job's progress; the rest is in memory.
type writer struct {
	r      *Runner
	job    *job
	upload *object.Upload // nil: nothing is flushed yet
	sum    hash.Hash      // over what is flushed
	buf    []byte         // what is not
	rows   int64          // in buf too
	after  *trail.Cursor  // the last event that was taken, in buf or left out
}

// writer goes on behind the job's progress, if the storage still has what it says.
func (r *Runner) writer(ctx context.Context, j *job) (*writer, error) {
	w := &writer{r: r, job: j, sum: sha256.New(), rows: j.Rows, after: j.After}
	if j.Upload != "" {
		w.upload = r.Bucket.ResumeUpload(j.key(), j.Upload)
		parts, err := w.upload.Parts(ctx)
		if err != nil {
			return nil, err
		}
		if len(parts) < int(j.Parts) {
			return nil, object.ErrNoUpload
		}
	}
	if j.Parts == 0 {
		w.buf = j.format.appendHeader(nil)
		return w, nil
	}
	return w, w.sum.(encoding.BinaryUnmarshaler).UnmarshalBinary(j.Hash)
}

// take adds an event, unless it came into its chain after the export began.
func (w *writer) take(ctx context.Context, e *trail.Event, s scope) error {
	after := e.Cursor()
	if uint64(e.Position) > s.lengths[e.TenantID] {
		w.after = &after
		return nil
	}
	buf, err := w.job.format.appendEvent(w.buf, e)
	if err != nil {
		return err
	}
	w.buf, w.after = buf, &after
	w.rows++
	if size := cmp.Or(w.r.PartSize, 8<<20) << (w.job.Parts / grown); len(w.buf) < size {
		return nil
	}
	if err := w.flush(ctx, false); err != nil {
		return err
	}
	if w.r.late(ctx) {
		return errLater
	}
	return nil
}

// flush writes the buffer as the next part and then the progress.
func (w *writer) flush(ctx context.Context, last bool) error {
	j := w.job
	if w.upload == nil {
		upload, err := w.r.Bucket.StartUpload(ctx, j.key(), j.format.ContentType())
		if err != nil {
			return err
		}
		w.r.signal("upload started")
		w.upload, j.Upload = upload, upload.ID()
		if err := w.r.save(ctx, j); err != nil {
			return err
		}
	}
	if len(w.buf) > 0 {
		if j.Parts == object.MaxParts {
			return fault.Invalid("the export is too large for one file: narrow the filter")
		}
		if err := w.upload.Part(ctx, j.Parts+1, w.buf); err != nil {
			return err
		}
		w.r.signal("part written")
		j.Parts++
	}
	if err := w.count(); err != nil {
		return err
	}
	if last {
		j.Whole, j.SHA256 = true, hex.EncodeToString(w.sum.Sum(nil))
	}
	if err := w.r.save(ctx, j); err != nil {
		return err
	}
	w.r.signal("part recorded")
	j.moved = true
	return nil
}

// count moves the buffer into the job's progress.
func (w *writer) count() (err error) {
	w.sum.Write(w.buf)
	j := w.job
	j.Bytes += int64(len(w.buf))
	j.Rows, j.After = w.rows, w.after
	w.buf = w.buf[:0]
	j.Hash, err = w.sum.(encoding.BinaryMarshaler).MarshalBinary()
	return err
}

// end writes what is left. A file that fits into one part is one PUT, which needs no progress: it is there or it is not.
func (w *writer) end(ctx context.Context) error {
	if w.upload != nil {
		return w.flush(ctx, true)
	}
	opts := object.PutOptions{ContentType: w.job.format.ContentType()}
	if _, err := w.r.Bucket.Put(ctx, w.job.key(), bytes.NewReader(w.buf), opts); err != nil {
		return err
	}
	if err := w.count(); err != nil {
		return err
	}
	w.job.SHA256 = hex.EncodeToString(w.sum.Sum(nil))
	return nil
}
