package turn

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/budget"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/text"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// Continued is what Continue wrote.
type Continued struct {
	TurnID  string          // "": nothing, since a person has the thread
	Notices []notify.Notice // to deliver after the commit
}

// Continue writes a message that nobody signed behind a thread's last turn, which is over, and the queued turn that answers it: what the platform does
// by itself in a thread of its own. If the thread has gone on since that turn, a person has taken it up, and nothing is written. An agent that takes no
// turns, or whose limits or budgets are reached, is refused as Request does.
//
// Whoever commits must then deliver the notices and dispatch the turn.
func Continue(ctx context.Context, tx pgx.Tx, tenantID, threadID, lastTurnID, body string) (Continued, error) {
	if err := text.Check("body", body, 1, thread.MaxBody); err != nil {
		return Continued{}, err
	}
	s, err := lockThread(ctx, tx, threadID)
	if err != nil {
		return Continued{}, err
	}
	var number int
	if err := tx.QueryRow(ctx, `select number from thread_turns where id = $1`, lastTurnID).Scan(&number); err != nil {
		return Continued{}, err
	}
	if s.running != "" || s.queued != "" || s.waiting != "" || s.turnNumber != number || s.status != thread.Open {
		return Continued{}, nil
	}
	if err := s.agent.CheckTurns(); err != nil {
		return Continued{}, err
	}
	if err := CheckRate(ctx, tx, s.agentID, s.limits); err != nil {
		return Continued{}, err
	}
	c := Continued{TurnID: ident.New()}
	s.turnNumber++
	var b pgx.Batch
	b.Queue(`insert into thread_turns (tenant_id, id, thread_uuid, agent_id, number, lease_until) values ($1, $2, $3, $4, $5, clock_timestamp() + $6)`,
		tenantID, c.TurnID, s.uuid, s.agentID, s.turnNumber, DispatchGrace)
	m := queueMessage(&b, tenantID, s, c.TurnID, Words{Body: body}, thread.EstimateTokens(body))
	m.ThreadID = threadID
	updated := ident.Now()
	b.Queue(`update threads set message_count = message_count + 1, turn_count = $2, token_count = token_count + $3, updated_at = greatest(updated_at, $4) where uuid = $1`,
		s.uuid, s.turnNumber, m.TokenCount, updated)
	if err := reserve(&b, budget.Turn{ID: c.TurnID, AgentID: s.agentID, SpaceID: s.spaceID}, s.price); err != nil {
		return Continued{}, err
	}
	c.Notices = []notify.Notice{notify.Queue(&b, tenantID, s.uuid, s.told(tenantID, m, updated)...)}
	return c, budget.Refusal(tx.SendBatch(ctx, &b).Close())
}
