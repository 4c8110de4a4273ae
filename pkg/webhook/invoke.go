package webhook

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/budget"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// Door is what is known of a webhook before a call belongs to a tenant.
type Door struct {
	TenantID  string
	WebhookID string
	RateLimit int // calls a minute
}

// Enter takes a token for its webhook. An id that never was and a wrong token are told the same.
func Enter(ctx context.Context, db *postgres.DB, id, token string) (Door, error) {
	door := Door{WebhookID: strings.ToLower(id)} // one spelling: the rate is counted by it
	var stored []byte
	var enabled bool
	if ident.Valid(id) {
		rows, err := db.Lookup().Query(ctx, `select tenant_id, token_hash, enabled, rate_limit from lookup_webhook($1)`, id)
		if err != nil {
			return door, err
		}
		if _, err := pgx.ForEachRow(rows, []any{&door.TenantID, &stored, &enabled, &door.RateLimit}, func() error { return nil }); err != nil {
			return door, err
		}
	}
	switch {
	case !isToken(token, stored):
		return door, ErrToken
	case !enabled:
		return door, fault.New(fault.Forbidden, "the webhook is disabled")
	}
	return door, nil
}

// ErrToken refuses a call: its token is not the webhook's, or there is no webhook.
var ErrToken = fault.New(fault.Unauthorized, "no webhook has this id and token")

// Invocation is a call that was let in.
type Invocation struct {
	WebhookID string
	Key       string // of the Idempotency-Key header, "" without one
	Payload   Payload
	Test      bool
}

// Invoked is a started run.
type Invoked struct {
	RunID        string         `json:"run_id"`
	ThreadID     *string        `json:"thread_id,omitempty"`     // of an agent's; a routine's has none
	ExecutionARN *string        `json:"execution_arn,omitempty"` // of a routine's that the workflow engine has begun with
	Status       turn.RunStatus `json:"status"`
	CreatedAt    ident.Time     `json:"created_at"`
	Test         bool           `json:"test,omitempty"`
	Deduplicated bool           `json:"deduplicated,omitempty"` // an earlier call's run, with the same Idempotency-Key
	Target       Target         `json:"-"`                      // what was started
}

// target is what a call of a webhook starts, as it stands now.
type target struct {
	name    string
	routine *string // nil: the target is an agent
	prompt  *string
	agentID string
	status  agent.Status
	limits  agent.RateLimits
	spaceID string
	price   turn.Price
	first   *string // the run of an earlier call with the same key
}

// Invoke starts the webhook's target: thread, message and run are committed together, in one round trip; the caller must then dispatch the
// run, or have it launched if it is a routine's. An agent that takes no turns, or a routine that was deleted, leaves a failed run; what is wrong with the
// call, or beyond the target's limits, leaves nothing.
func Invoke(ctx context.Context, db *postgres.DB, tenantID string, i Invocation) (Invoked, error) {
	for {
		t, err := readTarget(ctx, db.In(tenantID), i)
		if err != nil {
			return Invoked{}, err
		}
		if t.first != nil {
			return repeated(ctx, db.In(tenantID), i.WebhookID, *t.first)
		}
		start := t.invoke
		if t.routine != nil {
			start = t.startRoutine
		}
		invoked, err := start(ctx, db, tenantID, i)
		if !postgres.IsUnique(err, "webhook_keys_pkey") {
			return invoked, err
		}
		// Another call with this key was faster: its run is there now.
	}
}

func readTarget(ctx context.Context, q postgres.Querier, i Invocation) (target, error) {
	return postgres.One(ctx, q, "webhook", func(row pgx.CollectableRow) (t target, err error) {
		err = row.Scan(&t.name, &t.routine, &t.prompt, &t.agentID, &t.status, &t.limits.TurnsPerMinute, &t.limits.TurnsPerHour, &t.limits.TurnsPerDay, &t.spaceID, &t.first,
			&t.price.ModelID, &t.price.Terms.Capped, &t.price.Terms.TokensPerTurn)
		return t, err
	}, `select w.name, w.routine_id, w.prompt, coalesce(a.id::text, ''), coalesce(a.status, 'archived'), a.turns_per_minute, a.turns_per_hour, a.turns_per_day, s.id,
			(select k.run_id from webhook_keys k where k.webhook_id = w.id and k.key = $2 and k.created_at >= clock_timestamp() - $3::interval),
			coalesce(a.model_id, tp.model_id, ''), coalesce(b.capped, false), b.tokens_per_turn
		from webhooks w left join agents a on a.tenant_id = w.tenant_id and a.id = w.agent_id
			left join agent_templates tp on tp.tenant_id = a.tenant_id and tp.id = a.template_id
			left join spaces s on s.tenant_id = w.tenant_id and s.is_default
			left join lateral budget_terms(a.id, s.id) b on w.routine_id is null
		where w.id = $1`, i.WebhookID, i.Key, keyAge)
}

func (t target) invoke(ctx context.Context, db *postgres.DB, tenantID string, i Invocation) (Invoked, error) {
	c := turn.Call{RunID: ident.New(), WebhookID: i.WebhookID, Payload: i.Payload, Test: i.Test}
	body, err := message(t.prompt, i.Payload)
	if err != nil {
		return Invoked{}, err
	}
	var b pgx.Batch
	if !t.status.TakesTurns() {
		reason := "the webhook's agent is " + string(t.status) + " and takes no turns"
		turn.Refuse(&b, tenantID, c, t.agentID, reason)
		count(&b, i.WebhookID)
		if err := db.Once(ctx, tenantID, &b); err != nil {
			return Invoked{}, err
		}
		return Invoked{}, fault.New(fault.InternalError, "%s (run %s)", reason, c.RunID)
	}
	th := thread.Thread{Channel: thread.Auto, Title: &t.name, AgentID: t.agentID, SpaceID: t.spaceID}
	start := func(b *pgx.Batch) error {
		err := turn.Start(b, tenantID, c, &th, turn.Words{Body: body}, t.price)
		count(b, i.WebhookID)
		return err
	}
	if t.limits == (agent.RateLimits{}) {
		takeKey(&b, tenantID, i, c.RunID)
		if err := start(&b); err != nil {
			return Invoked{}, err
		}
		err = db.Once(ctx, tenantID, &b)
	} else {
		err = db.InTenant(ctx, tenantID, func(tx pgx.Tx) error {
			// The key before the limits: a call that is made again at the same moment is answered with its run, however few are allowed.
			var key, started pgx.Batch
			takeKey(&key, tenantID, i, c.RunID)
			if err := tx.SendBatch(ctx, &key).Close(); err != nil {
				return err
			}
			if err := turn.CheckRate(ctx, tx, t.agentID, t.limits); err != nil {
				return err
			}
			if err := start(&started); err != nil {
				return err
			}
			return tx.SendBatch(ctx, &started).Close()
		})
	}
	return Invoked{RunID: c.RunID, ThreadID: &th.ID, Status: turn.RunStarted, CreatedAt: th.CreatedAt, Test: i.Test, Target: Agent}, budget.Refusal(err)
}

// count queues the webhook's counters. The row is the last that a call locks, behind its key, its agent (if that has limits), the tenant's
// thread counter and the budgets (if there are any): calls of one webhook wait for one another here, as those of one tenant do for the thread's number.
func count(b *pgx.Batch, webhookID string) {
	b.Queue(`update webhooks set invocation_count = invocation_count + 1, last_invoked_at = greatest(last_invoked_at, $2) where id = $1`, webhookID, ident.Now())
}

// repeated is the answer to a call that was made before.
func repeated(ctx context.Context, q postgres.Querier, webhookID, runID string) (Invoked, error) {
	r, err := turn.GetRun(ctx, q, webhookID, runID)
	invoked := Invoked{RunID: r.ID, ThreadID: r.ThreadID, Status: r.Status, CreatedAt: r.CreatedAt, Test: r.Test, Deduplicated: true, Target: Agent}
	if err != nil || r.RoutineID == nil {
		return invoked, err
	}
	run, err := routine.GetRun(ctx, q, runID)
	invoked.Target, invoked.ExecutionARN = Routine, run.ARN
	return invoked, err
}
