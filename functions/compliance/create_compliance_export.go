package compliance

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/export"
	"github.com/agentplatform/agentplatform/pkg/audit/trail"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// runExport is what run-export is invoked with; without a job it sweeps.
type runExport struct {
	JobID string `json:"jobId"`
}

// CreateComplianceExport answers Mutation.createComplianceExport. The act is recorded in the chain of the tenant that is exported, or, when all
// are, in that of the operator's own.
func CreateComplianceExport(env *handler.Env) lambda.Handler {
	db, outbox, operators, run := env.DB(), env.Outbox(), env.Operators(), env.Invoke("run-export")
	type args struct {
		Input struct {
			Format *export.Format  `json:"format"`
			Filter json.RawMessage `json:"filter"`
		} `json:"input"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (job export.Job, err error) {
		caller, err := operators.Check(ctx)
		if err != nil {
			return job, err
		}
		filter, err := export.ParseFilter(a.Input.Filter, ident.Now())
		if err != nil {
			return job, err
		}
		format := export.CSV
		if a.Input.Format != nil {
			format = *a.Input.Format
		}
		chain := caller.TenantID
		if filter.TenantID != nil {
			chain = *filter.TenantID
		}
		if chain == "" {
			return job, fault.Invalid("filter.tenantId is required: the export is recorded in a tenant's log, and this operator belongs to none")
		}
		err = outbox.InTenant(ctx, db, chain, func(tx pgx.Tx) error {
			var exists bool
			if err := tx.QueryRow(ctx, `select exists (select from tenants where id = $1)`, chain).Scan(&exists); err != nil {
				return err
			}
			if !exists {
				return fault.Missing("tenant")
			}
			if job, err = export.Create(ctx, tx, chain, caller.Email, format, filter); err != nil {
				return err
			}
			return outbox.Record(ctx, tx, initiated(job, filter))
		})
		if err != nil {
			return job, err
		}
		if err := run(ctx, runExport{job.ID}); err != nil { // the job is queued: the sweep finds it
			slog.WarnContext(ctx, "invoking run-export failed", "job_id", job.ID, "error", err)
		}
		return job, nil
	})
}

// initiated is the event of a new export.
func initiated(job export.Job, filter trail.Filter) audit.Event {
	return audit.Event{Type: audit.ExportInitiated, ResourceType: "export", ResourceID: job.ID,
		Payload: map[string]any{"exportJobId": job.ID, "format": string(job.Format), "filter": filter.Map(), "requestedBy": job.RequestedBy}}
}
