package compliance

import (
	"context"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/export"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/object"
)

// exportLink is where a finished export can be had.
type exportLink struct {
	URL         string     `json:"url"`
	ManifestURL string     `json:"manifestUrl"`
	FileName    string     `json:"fileName"`
	ExpiresAt   ident.Time `json:"expiresAt"`
}

// ComplianceExportLink answers Query.complianceExportLink. Links last whole seconds: one ends within the second before expiresAt.
func ComplianceExportLink(env *handler.Env) lambda.Handler {
	db, operators, bucket := env.Reader(), env.Operators(), env.ExportsReader()
	type args struct {
		JobID string `json:"jobId"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (link exportLink, err error) {
		if _, err := operators.Check(ctx); err != nil {
			return link, err
		}
		var job export.Job
		err = db.Unbound(ctx, func(tx pgx.Tx) error {
			job, err = export.Get(ctx, tx, a.JobID)
			return err
		})
		if err != nil {
			return link, err
		}
		switch job.Status {
		case export.Complete:
		case export.Failed:
			return link, fault.Invalid("the export failed (%s): create a new export", *job.Error)
		default:
			return link, fault.Invalid("the export is %s: it has a link once it is Complete", job.Status)
		}
		link = exportLink{FileName: export.FileName(job.ID, job.Format), ExpiresAt: ident.Time{Time: job.FinishedAt.Add(export.LinkValidity)}}
		left := time.Until(link.ExpiresAt.Time).Truncate(time.Second)
		if left <= 0 {
			return exportLink{}, fault.Invalid("the link to this export expired at %s: create a new export", link.ExpiresAt)
		}
		key := export.Key(job.ID, job.Format)
		if link.URL, err = bucket.Presign(ctx, key, object.PresignOptions{Validity: left, FileName: link.FileName}); err != nil {
			return exportLink{}, err
		}
		link.ManifestURL, err = bucket.Presign(ctx, anchor.ManifestKey(key), object.PresignOptions{Validity: left, FileName: link.FileName + ".manifest.json"})
		return link, err
	})
}
