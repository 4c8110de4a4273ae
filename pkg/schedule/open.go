package schedule

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/budget"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/text"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// Input is what an execution is started with.
type Input struct {
	TenantID string          `json:"tenantId"`
	AgentID  string          `json:"agentId"`
	Prompt   string          `json:"prompt"`             // the user message of the thread, 1 byte to 128 KiB
	Title    *string         `json:"title,omitempty"`    // of the thread
	Metadata json.RawMessage `json:"metadata,omitempty"` // of the thread: a JSON object
}

func (i Input) check() error {
	if err := text.Check("prompt", i.Prompt, 1, thread.MaxBody); err != nil {
		return err
	}
	return thread.Check(i.Title, i.metadata())
}

// metadata is the thread's, as text; nil for none.
func (i Input) metadata() *string {
	if len(i.Metadata) == 0 || string(i.Metadata) == "null" {
		return nil
	}
	s := string(i.Metadata)
	return &s
}

// Opened is the thread that an execution works in, and the turn that answers its prompt.
type Opened struct {
	ThreadID string `json:"threadId"` // public
	TurnID   string `json:"turnId"`
}

// Open opens the execution's AUTO thread with the prompt and a queued turn, in one transaction. An execution that has one keeps it. An agent
// that takes no turns is Forbidden, its limits are RateLimitExceeded, its budgets BudgetExceeded; nothing is written then.
func Open(ctx context.Context, db *postgres.DB, executionARN string, i Input) (opened Opened, err error) {
	if err := i.check(); err != nil {
		return Opened{}, err
	}
	err = inTenant(ctx, db, i.TenantID, func(tx pgx.Tx) error {
		opened, err = i.open(ctx, tx, executionARN)
		return err
	})
	return opened, err
}

func (i Input) open(ctx context.Context, tx pgx.Tx, executionARN string) (Opened, error) {
	e, err := take(ctx, tx, i.TenantID, executionARN)
	switch {
	case err != nil:
		return Opened{}, err
	case e.turnID != nil:
		t, err := turn.Get(ctx, tx, *e.turnID)
		if err != nil {
			return Opened{}, err
		}
		return Opened{ThreadID: *t.ThreadID, TurnID: t.ID}, nil
	case e.status != Running: // it was closed while this call was under way
		return Opened{}, fault.Invalid("the execution is over")
	}
	a, err := agent.Get(ctx, tx, i.AgentID)
	if err != nil {
		return Opened{}, err
	}
	if !a.Status.TakesTurns() {
		return Opened{}, fault.New(fault.Forbidden, "the agent is %s and takes no turns", a.Status)
	}
	if a.RateLimits != nil {
		if err := turn.CheckRate(ctx, tx, a.ID, *a.RateLimits); err != nil {
			return Opened{}, err
		}
	}
	th := thread.Thread{Channel: thread.Auto, Title: i.Title, Metadata: i.metadata(), AgentID: a.ID}
	var price turn.Price
	if err := tx.QueryRow(ctx, `select s.id, tp.model_id, b.capped, b.tokens_per_turn
		from spaces s cross join agent_templates tp cross join lateral budget_terms($1, s.id) b where s.is_default and tp.id = $2`, a.ID, a.TemplateID).
		Scan(&th.SpaceID, &price.ModelID, &price.Terms.Capped, &price.Terms.TokensPerTurn); err != nil {
		return Opened{}, err
	}
	turnID := ident.New()
	var b pgx.Batch
	if err := turn.Start(&b, i.TenantID, turn.Call{RunID: turnID}, &th, i.Prompt, price); err != nil {
		return Opened{}, err
	}
	b.Queue(`update executions set turn_id = $2 where id = $1`, e.id, turnID)
	err = tx.SendBatch(ctx, &b).Close() // completes th
	return Opened{ThreadID: th.ID, TurnID: turnID}, budget.Refusal(err)
}
