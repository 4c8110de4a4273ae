package callback

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/turn"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// TurnFailed is the code of a turn that is over and did not succeed; the reason is the one in its record.
const TurnFailed = "TurnFailed"

// Turn is the result of a task that waited for a turn which has succeeded.
type Turn struct {
	ThreadID *string     `json:"threadId"` // public
	TurnID   string      `json:"turnId"`
	Status   turn.Status `json:"status"` // succeeded
	Reply    string      `json:"reply"`  // its last message; cut where it would not fit, and Cut says so
	Cut      bool        `json:"replyCut,omitempty"`
}

// maxReply is the most bytes of a reply's JSON: an engine takes four times as much, and other states add to it.
const maxReply = workflow.MaxData / 4

// ofTurn makes the answer from the record of the turn.
func (w *waiting) ofTurn(ctx context.Context, tx pgx.Tx) error {
	t, err := turn.Get(ctx, tx, *w.turnID)
	if fault.IsMissing(err) {
		w.failure, w.failureReason = TurnFailed, "the turn is not there any more"
		return nil
	}
	if err != nil {
		return err
	}
	if t.Status != turn.Succeeded {
		w.failure, w.failureReason = workflow.Reason(TurnFailed, t.Reason())
		return nil
	}
	a := Turn{ThreadID: t.ThreadID, TurnID: t.ID, Status: t.Status}
	err = tx.QueryRow(ctx, `select coalesce((select body from messages where turn_id = $1 and role = 'assistant' order by position desc limit 1), '')`, t.ID).Scan(&a.Reply)
	if err != nil {
		return err
	}
	w.answer, err = a.encode()
	return err
}

// encode shortens the reply until its JSON fits: a character may take six bytes there.
func (a Turn) encode() (json.RawMessage, error) {
	for {
		text, err := json.Marshal(a)
		if err != nil || len(text) <= maxReply {
			return text, err
		}
		runes := []rune(a.Reply)
		a.Reply, a.Cut = string(runes[:len(runes)*3/4]), true
	}
}
