package deployment

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/postgres/migrate"
	"github.com/agentplatform/agentplatform/schema"
)

// margin is what is left of the function's time to say that it was over.
const margin = 15 * time.Second

// Migrate brings the database to this release's schema before the release's functions are there. What the event holds does not matter.
func Migrate(env *handler.Env) lambda.Handler {
	type answer struct {
		migrate.Report
		Message string `json:"message"`
	}
	return handler.Trigger(func(ctx context.Context, _ json.RawMessage) (answer, error) {
		if deadline, ok := ctx.Deadline(); ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, deadline.Add(-margin))
			defer cancel()
		}
		// The owner is asked for in the call, so that what is wrong with its settings is the answer, and not only in a log.
		report, err := migrate.Run(ctx, env.Owner(), migrate.Config{Files: schema.SQL, Cloud: true, Knowledge: env.KnowledgePassword()})
		slog.InfoContext(ctx, "migrated", "from", report.From, "to", report.To, "applied", report.Applied, "knowledge", report.Knowledge, "error", err)
		return answer{report, outcome(report)}, err
	})
}

// outcome is a report in words.
func outcome(r migrate.Report) string {
	text := versions(r)
	switch r.Knowledge {
	case "":
	case migrate.KnowledgeReady:
		text += "; the knowledge base has its table"
	default:
		text += "; the knowledge base has no table: " + r.Knowledge
	}
	return text
}

func versions(r migrate.Report) string {
	switch {
	case len(r.Newer) > 0:
		return fmt.Sprintf("the database is at version %d, which a later release made (%s): nothing was changed, for that release's schema is compatible with this one",
			r.From, strings.Join(r.Newer, ", "))
	case len(r.Applied) == 0:
		return fmt.Sprintf("the database is at version %d already: nothing was to be done", r.To)
	}
	return fmt.Sprintf("the database went from version %d to %d", r.From, r.To)
}
