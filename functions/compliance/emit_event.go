package compliance

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/canonical"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// How far an event may lie from now.
const (
	oldest = 24 * time.Hour
	ahead  = 5 * time.Minute // clocks differ
)

// emission is the body of POST /api/compliance/events.
type emission struct {
	EventID    string          `json:"event_id"` // UUIDv7, chosen by the caller
	TenantID   string          `json:"tenant_id"`
	OccurredAt ident.Time      `json:"occurred_at"`
	Actor      string          `json:"actor"`
	ActorType  audit.ActorType `json:"actor_type"`
	EventType  audit.Type      `json:"event_type"`
	Payload    map[string]any  `json:"payload"`
	AgentID    *string         `json:"agent_id"`
	ThreadID   *string         `json:"thread_id"` // <PREFIX>-<n>
}

// emitted is the answer: the receipt proves later that the event was taken.
type emitted struct {
	EventID string `json:"event_id"`
	Receipt string `json:"receipt"` // 64 hex digits
}

// EmitEvent answers POST /api/compliance/events: an agent runtime records an event. Whoever holds API_AUTH_SECRET may speak for every tenant, which is
// all that one shared secret can say; agent and thread must be that tenant's.
//
// The same event again is a no-op with the first answer (200 instead of 201), also when it has become too old to be new; the same event_id with
// another body is a 409. Two bodies are the same when they are the same JSON value: white space and order do not matter.
func EmitEvent(env *handler.Env) lambda.Handler {
	db, outbox, secret := env.DB(), env.Outbox(), sha256.Sum256([]byte(env.APISecret()))
	return handler.REST(func(ctx context.Context, r *handler.Request) (handler.Reply, error) {
		if given := sha256.Sum256([]byte(r.Bearer())); subtle.ConstantTimeCompare(given[:], secret[:]) != 1 {
			return handler.Reply{}, fault.New(fault.Unauthorized, "no valid API secret")
		}
		said, body, err := readEmission(r)
		if err != nil {
			return handler.Reply{}, err
		}
		event, err := said.event(r.ID)
		if err != nil {
			return handler.Reply{}, err
		}
		answer, status := emitted{EventID: event.EventID}, http.StatusCreated
		err = outbox.InTenant(ctx, db, event.TenantID, func(tx pgx.Tx) (err error) {
			if event.ThreadID, err = said.belongs(ctx, tx); err != nil {
				return err
			}
			var repeated bool
			if late := said.checkTime(time.Now()); late != nil {
				if answer.Receipt, repeated, err = outbox.Recorded(ctx, tx, event.EventID, body); err == nil && !repeated {
					err = late
				}
			} else {
				answer.Receipt, repeated, err = outbox.RecordOnce(ctx, tx, event, body)
			}
			if repeated {
				status = http.StatusOK
			}
			return err
		})
		return handler.Reply{Status: status, Body: answer}, err
	})
}

// readEmission reads the body, and the SHA-256 of its canonical form.
func readEmission(r *handler.Request) (said emission, hash []byte, err error) {
	raw, err := r.JSON()
	if err != nil {
		return said, nil, err
	}
	body, err := canonical.Transform(nil, raw)
	if refused := new(canonical.Error); errors.As(err, &refused) {
		return said, nil, fault.Invalid("the body, byte %d: %s", refused.Offset, refused.What)
	} else if err != nil {
		return said, nil, err
	}
	sum := sha256.Sum256(body)
	return said, sum[:], handler.Decode(body, &said)
}

// event is what was said as an event, checked but for what only the database knows.
func (e *emission) event(requestID string) (audit.Event, error) {
	event := audit.Event{EventID: e.EventID, TenantID: e.TenantID, OccurredAt: e.OccurredAt, Actor: e.Actor, ActorType: e.ActorType,
		Source: audit.SourceRuntime, Type: e.EventType, RequestID: requestID, Payload: e.Payload}
	if e.AgentID != nil {
		event.AgentID = *e.AgentID
	}
	for _, m := range [...]struct {
		name    string
		missing bool
	}{
		{"event_id", e.EventID == ""}, {"occurred_at", e.OccurredAt.IsZero()}, {"payload", e.Payload == nil},
		{"agent_id", e.AgentID != nil && *e.AgentID == ""}, {"thread_id", e.ThreadID != nil && *e.ThreadID == ""},
	} {
		if m.missing {
			return event, fault.Invalid("%s is missing or empty", m.name)
		}
	}
	_, err := event.Envelope()
	return event, err
}

func (e *emission) checkTime(now time.Time) error {
	if e.OccurredAt.Before(now.Add(-oldest)) || e.OccurredAt.After(now.Add(ahead)) {
		return fault.Invalid("occurred_at must lie within the last 24 hours, and at most 5 minutes ahead")
	}
	return nil
}

// belongs checks that tenant, agent and thread are there and belong together, and gives the thread's UUID. What is another tenant's is not there.
func (e *emission) belongs(ctx context.Context, tx pgx.Tx) (threadUUID string, err error) {
	var thread ident.Thread
	if e.ThreadID != nil {
		var ok bool
		if thread, ok = ident.ParseThread(*e.ThreadID); !ok {
			return "", fault.Invalid("thread_id must have the form <PREFIX>-<number>")
		}
	}
	var tenant, agent, found *string
	err = tx.QueryRow(ctx, `select (select id from tenants where id = $1), (select id from agents where id = $2),
		(select uuid from threads where prefix = $3 and number = $4)`, e.TenantID, e.AgentID, thread.Prefix, thread.Number).Scan(&tenant, &agent, &found)
	switch {
	case err != nil:
		return "", err
	case tenant == nil:
		return "", fault.Invalid("tenant_id names no tenant")
	case e.AgentID != nil && agent == nil:
		return "", fault.Invalid("agent_id names no agent of the tenant")
	case e.ThreadID != nil && found == nil:
		return "", fault.Invalid("thread_id names no thread of the tenant")
	case found != nil:
		return *found, nil
	}
	return "", nil
}
