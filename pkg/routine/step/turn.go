package step

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/text"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// runTurn queues the turn that answers the prompt: in a new AUTO thread, or behind what a thread of that agent has. The turn's end is told by the trigger
// that writes it down. The agent's limits are RateLimitExceeded, its budgets BudgetExceeded.
func (n newStep) runTurn(ctx context.Context, tx pgx.Tx) (Begun, error) {
	var in struct {
		AgentID  string  `json:"agentId"`
		Prompt   string  `json:"prompt"`
		ThreadID string  `json:"threadId"`
		Title    *string `json:"title"`
	}
	if err := json.Unmarshal(n.Input, &in); err != nil {
		return Begun{}, err
	}
	if err := text.Check("prompt", in.Prompt, 1, thread.MaxBody); err != nil {
		return Begun{}, err
	}
	a, err := takesTurns(ctx, tx, in.AgentID)
	if err != nil {
		return Begun{}, err
	}
	begun := Begun{StepID: n.id}
	if in.ThreadID == "" {
		begun.TurnID, err = n.openThread(ctx, tx, a, in.Prompt, in.Title)
	} else {
		begun.TurnID, begun.Notices, err = n.inThread(ctx, tx, a, in.ThreadID, in.Prompt)
	}
	if err != nil {
		return Begun{}, err
	}
	added, err := n.wait(ctx, tx, begun.TurnID)
	if err != nil {
		return Begun{}, err
	}
	if added.Due {
		begun.DueID = added.ID
	}
	_, err = tx.Exec(ctx, `update routine_steps set agent_id = $2, turn_id = $3 where id = $1`, n.id, a.ID, begun.TurnID)
	return begun, err
}

// takesTurns is the agent, which works.
func takesTurns(ctx context.Context, q postgres.Querier, id string) (agent.Agent, error) {
	a, err := agent.Get(ctx, q, id)
	if err == nil {
		err = a.Status.CheckTurns()
	}
	return a, err
}

func (n newStep) openThread(ctx context.Context, tx pgx.Tx, a agent.Agent, prompt string, title *string) (turnID string, err error) {
	if err := thread.Check(title, nil); err != nil {
		return "", err
	}
	th := thread.Thread{Channel: thread.Auto, Title: title}
	return turn.Open(ctx, tx, n.TenantID, a, &th, turn.Words{Body: prompt}, nil)
}

func (n newStep) inThread(ctx context.Context, tx pgx.Tx, a agent.Agent, threadID, prompt string) (turnID string, told []notify.Notice, err error) {
	th, err := thread.Get(ctx, tx, threadID)
	switch {
	case err != nil:
		return "", nil, err
	case th.AgentID != a.ID:
		return "", nil, fault.Invalid("thread %s is another agent's", threadID)
	}
	asked, err := turn.Request(ctx, tx, n.TenantID, turn.Ask{ThreadID: threadID, Body: prompt, OnBusy: turn.Enqueue})
	return asked.TurnID, asked.Notices, err
}
