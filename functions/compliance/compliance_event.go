package compliance

import (
	"bytes"
	"context"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit/trail"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// payloadValidity is how long the link to a large payload is good.
const payloadValidity = 15 * time.Minute

// ComplianceEvent answers Query.complianceEvent. A payload that is too large to be shown is put into the bucket of exports, and the answer links there.
func ComplianceEvent(env *handler.Env) lambda.Handler {
	db, operators, bucket := env.Reader(), env.Operators(), env.Exports()
	type args struct {
		EventID string `json:"eventId"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (event, error) {
		if _, err := operators.Check(ctx); err != nil {
			return event{}, err
		}
		found, shown, err := readOne(ctx, db, func(tx pgx.Tx) (trail.Event, error) { return trail.ByID(ctx, tx, a.EventID) })
		if err != nil || shown.Payload != nil {
			return shown, err
		}
		key := "payloads/" + found.EventID + ".json"
		if _, err := bucket.Put(ctx, key, bytes.NewReader(found.Payload), object.PutOptions{ContentType: "application/json"}); err != nil {
			return event{}, err
		}
		url, err := bucket.Presign(ctx, key, object.PresignOptions{Validity: payloadValidity, FileName: "compliance-event-" + found.EventID + "-payload.json"})
		shown.PayloadURL = &url
		return shown, err
	})
}

// readOne reads one event, and how the API shows it.
func readOne(ctx context.Context, db *postgres.DB, read func(tx pgx.Tx) (trail.Event, error)) (found trail.Event, shown event, err error) {
	err = db.Unbound(ctx, func(tx pgx.Tx) error {
		if found, err = read(tx); err != nil {
			return err
		}
		anchored, err := trail.Anchored(ctx, tx)
		shown = show(&found, anchored)
		return err
	})
	return found, shown, err
}
