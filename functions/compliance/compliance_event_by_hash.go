package compliance

import (
	"context"
	"errors"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// event is an audit event as the API shows it.
type event struct {
	EventID       string     `json:"eventId"`
	TenantID      string     `json:"tenantId"`
	OccurredAt    ident.Time `json:"occurredAt"`
	RecordedAt    ident.Time `json:"recordedAt"`
	Actor         string     `json:"actor"`
	ActorType     string     `json:"actorType"`
	Source        string     `json:"source"`
	EventType     string     `json:"eventType"`
	EventHash     string     `json:"eventHash"`
	PrevHash      string     `json:"prevHash"`
	ChainPosition int        `json:"chainPosition"`
	Anchor        anchor     `json:"anchor"`
	Payload       string     `json:"payload"`
}

type anchor struct {
	Status    string  `json:"status"`
	CadenceID *string `json:"cadenceId"`
}

// ComplianceEventByHash answers Query.complianceEventByHash.
func ComplianceEventByHash(env *handler.Env) lambda.Handler {
	db, operators := env.Reader(), env.Operators()
	type args struct {
		EventHash string `json:"eventHash"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (e event, err error) {
		if _, err := operators.Check(ctx); err != nil {
			return event{}, err
		}
		err = db.Unbound(ctx, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, `select event_id, tenant_id, occurred_at, recorded_at, actor, actor_type, source, event_type, event_hash, prev_hash,
				chain_position, cadence_id, payload::text from audit_events where event_hash = $1`, a.EventHash).
				Scan(&e.EventID, &e.TenantID, &e.OccurredAt, &e.RecordedAt, &e.Actor, &e.ActorType, &e.Source, &e.EventType, &e.EventHash, &e.PrevHash,
					&e.ChainPosition, &e.Anchor.CadenceID, &e.Payload)
		})
		if errors.Is(err, pgx.ErrNoRows) {
			return event{}, fault.Missing("event")
		}
		e.Anchor.Status = "PENDING"
		if e.Anchor.CadenceID != nil {
			e.Anchor.Status = "ANCHORED"
		}
		return e, err
	})
}
