package space

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/outbox"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/space"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// UpdateGovernanceFile answers Mutation.updateGovernanceFile.
func UpdateGovernanceFile(env *handler.Env) lambda.Handler {
	db, o := env.DB(), env.Outbox()
	type args struct {
		Input space.Edit `json:"input"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (space.GovernanceFile, error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return space.GovernanceFile{}, err
		}
		return outbox.Act(ctx, o, db, caller.TenantID, func(tx pgx.Tx) (space.GovernanceFile, []audit.Event, error) {
			return space.Write(ctx, tx, caller, a.Input)
		})
	})
}
