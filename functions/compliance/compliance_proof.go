package compliance

import (
	"context"
	"errors"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/audit/proof"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// ComplianceProof answers Query.complianceProof.
func ComplianceProof(env *handler.Env) lambda.Handler {
	db, operators, bucket := env.Reader(), env.Operators(), env.AuditReader()
	type args struct {
		EventID string `json:"eventId"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (string, error) {
		if _, err := operators.Check(ctx); err != nil {
			return "", err
		}
		if !ident.Valid(a.EventID) {
			return "", fault.Missing("event")
		}
		file, err := proof.Build(ctx, db, bucket, a.EventID)
		if errors.Is(err, proof.ErrDamaged) { // an operator is to know, and what to do
			slog.ErrorContext(ctx, "the audit log is damaged", "event_id", a.EventID, "error", err)
			return "", fault.New(fault.InternalError, "the audit log is damaged, this event cannot be proven: run audit-verifier verify")
		}
		return string(file), err
	})
}
