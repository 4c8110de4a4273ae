package export

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit/trail"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// Limits of exports.
const (
	MaxWindow    = 90 * 24 * time.Hour
	MaxFilter    = 4 << 10 // bytes of the filter as JSON
	PerHour      = 10      // jobs of an operator, over any 60 minutes
	LinkValidity = 15 * time.Minute
	MaxAttempts  = 3
)

// Format is the form of a file.
type Format string

const (
	CSV    Format = "CSV"
	NDJSON Format = "NDJSON"
)

// Status is where a job is in its life.
type Status string

const (
	Queued   Status = "Queued"
	Running  Status = "Running"
	Complete Status = "Complete"
	Failed   Status = "Failed"
)

// Job is an export, as the API shows it.
type Job struct {
	ID          string      `json:"id"`
	Status      Status      `json:"status"`
	Format      Format      `json:"format"`
	Filter      string      `json:"filter"`      // canonical JSON, with both times
	RequestedBy string      `json:"requestedBy"` // e-mail address, lower case
	RequestedAt ident.Time  `json:"requestedAt"`
	StartedAt   *ident.Time `json:"startedAt"`
	FinishedAt  *ident.Time `json:"finishedAt"`
	Rows        *int64      `json:"rows"` // until it is complete: null, as the next two
	Bytes       *int64      `json:"bytes"`
	SHA256      *string     `json:"sha256"`
	Error       *string     `json:"error"`
}

// ParseFilter reads a filter as a caller asked for it and gives it both times: to is now when it is missing, from trail.DefaultWindow before to.
func ParseFilter(raw json.RawMessage, now ident.Time) (trail.Filter, error) {
	var f trail.Filter
	if len(raw) > 0 {
		size, err := jsonSize(raw)
		if err != nil {
			return f, fault.Invalid("filter: %v", err)
		}
		if size > MaxFilter {
			return f, fault.Invalid("the filter is larger than %d bytes", MaxFilter)
		}
		if err := json.Unmarshal(raw, &f); err != nil {
			return f, fault.Invalid("filter: %v", err)
		}
	}
	if f.To == nil {
		f.To = &now
	}
	f, err := f.Check()
	if err != nil {
		return f, err
	}
	f = f.Since(now)
	if f.To.Sub(f.From.Time) > MaxWindow {
		return f, fault.Invalid("an export covers at most %d days", MaxWindow/(24*time.Hour))
	}
	return f, nil
}

// jsonSize is the length of a JSON text without white space and needless escapes: what the caller's own spelling adds does not count.
func jsonSize(raw json.RawMessage) (int, error) {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return 0, err
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return out.Len() - 1, err // it ends the line
}

const columns = `id, status, format, filter::text, requested_by, requested_at, started_at, finished_at, rows, bytes, sha256, error`

func scan(row pgx.CollectableRow) (Job, error) {
	var j Job
	err := row.Scan(&j.ID, &j.Status, &j.Format, &j.Filter, &j.RequestedBy, &j.RequestedAt, &j.StartedAt, &j.FinishedAt, &j.Rows, &j.Bytes, &j.SHA256, &j.Error)
	return j, err
}

// Create queues a job of the transaction's tenant, in whose chain it is recorded; f is ParseFilter's. The operator's lock, held to the end of the
// transaction, makes its jobs wait for one another, in whatever tenants they are, so that the count is exact.
func Create(ctx context.Context, tx pgx.Tx, tenantID, operator string, format Format, f trail.Filter) (Job, error) {
	if format != CSV && format != NDJSON {
		return Job{}, fault.Invalid("format must be CSV or NDJSON")
	}
	operator = strings.ToLower(operator)
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended($1, 0))`, "exports of "+operator); err != nil {
		return Job{}, err
	}
	var recent int
	if err := tx.QueryRow(ctx, `select lookup_recent_exports($1)`, operator).Scan(&recent); err != nil {
		return Job{}, err
	}
	if recent >= PerHour {
		return Job{}, fault.New(fault.RateLimitExceeded, "an operator may make %d exports an hour", PerHour)
	}
	text, err := f.Canonical()
	if err != nil {
		return Job{}, err
	}
	return postgres.One(ctx, tx, "export", scan, `insert into export_jobs (tenant_id, id, format, filter, requested_by) values ($1, $2, $3, $4, $5) returning `+columns,
		tenantID, ident.New(), format, string(text), operator)
}

// Get is one job, of whatever tenant: q is the compliance reader's.
func Get(ctx context.Context, q postgres.Querier, id string) (Job, error) {
	if !ident.Valid(id) {
		return Job{}, fault.Missing("export")
	}
	return postgres.One(ctx, q, "export", scan, `select `+columns+` from export_jobs where id = $1`, id)
}

// Cursor is a job's place in the list.
type Cursor struct {
	RequestedAt ident.Time `json:"r"`
	ID          string     `json:"i"`
}

// Cursor is j's place in the list.
func (j Job) Cursor() Cursor { return Cursor{j.RequestedAt, j.ID} }

// List is up to limit jobs of all operators, newest first, behind the cursor: q is the compliance reader's.
func List(ctx context.Context, q postgres.Querier, after *Cursor, limit int) ([]Job, error) {
	if after == nil {
		return postgres.All(ctx, q, scan, `select `+columns+` from export_jobs order by requested_at desc, id desc limit $1`, limit)
	}
	return postgres.All(ctx, q, scan, `select `+columns+` from export_jobs where (requested_at, id) < ($2, $3) order by requested_at desc, id desc limit $1`,
		limit, after.RequestedAt, after.ID)
}

// FileName is what a downloaded file is called.
func FileName(jobID string, format Format) string {
	return fmt.Sprintf("compliance-event-%s.%s", jobID, strings.ToLower(string(format)))
}

// Key is where a job's file lies in the exports bucket; the manifest is at anchor.ManifestKey of it.
func Key(jobID string, format Format) string { return "exports/" + FileName(jobID, format) }
