package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/text"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// ApprovalStatus is what a person said to a call.
type ApprovalStatus string

const (
	Pending  ApprovalStatus = "pending"
	Approved ApprovalStatus = "approved"
	Denied   ApprovalStatus = "denied"
)

// ToolApproval is a call that waits, or waited, for a person, as the API shows it.
type ToolApproval struct {
	ToolCallID string         `json:"toolCallId"`
	Name       string         `json:"name"`
	Input      string         `json:"input"` // JSON text
	Status     ApprovalStatus `json:"status"`
	UserID     *string        `json:"userId"` // who decided
	Reason     *string        `json:"reason"` // of a denial
	CreatedAt  ident.Time     `json:"createdAt"`
	DecidedAt  *ident.Time    `json:"decidedAt"`
}

// approval is a call that is put to a person.
type approval struct {
	step int
	use  model.ToolUse
}

// queueApprovals puts calls to a person.
func (a *attempt) queueApprovals(b *pgx.Batch, calls []approval) {
	for _, c := range calls {
		b.Queue(`insert into tool_approvals (tenant_id, turn_id, step, tool_call_id, name, input) values ($1, $2, $3, $4, $5, $6)`,
			a.tenantID, a.turnID, c.step, c.use.ID, c.use.Name, c.use.Input)
	}
}

// decision is what an attempt reads of an approval.
type decision struct {
	status ApprovalStatus
	reason *string
}

// refusal is what the model is told of a denied call.
func (d decision) refusal() string {
	if d.reason != nil && *d.reason != "" {
		return "a person refused the call: " + *d.reason
	}
	return "a person refused the call"
}

func (a *attempt) queueDecisions(b *pgx.Batch) {
	b.Queue(`select step, status, reason from tool_approvals where turn_id = $1`, a.turnID).Query(func(rows pgx.Rows) error {
		a.approvals = map[int]decision{}
		var step int
		var d decision
		_, err := pgx.ForEachRow(rows, []any{&step, &d.status, &d.reason}, func() error {
			a.approvals[step] = d
			d = decision{}
			return nil
		})
		return err
	})
}

// Decision is what a person decides about a call.
type Decision struct {
	TurnID     string
	ToolCallID string
	Approve    bool
	Reason     *string // of a denial; up to 1 KiB
	UserID     string
}

// Decided is what came of a decision or a cancellation.
type Decided struct {
	Turn     Turn
	Due      string          // the id of the turn to dispatch once tx is committed; "": none
	Notices  []notify.Notice // to deliver after the commit
	Callback string          // the id of the callback that is due with the turn's end; "": none
}

// Decide notes what a person decided about a call; with the last pending one the turn goes on. The same decision twice is one; another one is
// refused, as is one about a turn that does not wait.
func Decide(ctx context.Context, tx pgx.Tx, tenantID string, d Decision) (Decided, error) {
	if err := text.CheckOptional("reason", d.Reason, 1<<10); err != nil {
		return Decided{}, err
	}
	s, err := lockTurn(ctx, tx, d.TurnID)
	if err != nil {
		return Decided{}, err
	}
	status := Denied
	if d.Approve {
		status = Approved
	}
	var before ApprovalStatus
	var step int
	err = tx.QueryRow(ctx, `select step, status from tool_approvals where turn_id = $1 and tool_call_id = $2 order by step desc limit 1 for no key update`,
		d.TurnID, d.ToolCallID).Scan(&step, &before)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Decided{}, fault.Missing("call that waits for approval")
	case err != nil:
		return Decided{}, err
	case before == status:
		return decided(ctx, tx, d.TurnID, "", nil)
	case before != Pending:
		return Decided{}, fault.Invalid("the call was %s already", before)
	case s.status != Waiting:
		return Decided{}, fault.Invalid("the turn is %s and waits for nothing", s.status)
	}
	var pending int
	err = tx.QueryRow(ctx, `with decided as (
			update tool_approvals set status = $3, user_id = $4, reason = $5, decided_at = $6 where turn_id = $1 and step = $2)
		select count(*) from tool_approvals where turn_id = $1 and status = 'pending' and step <> $2`,
		d.TurnID, step, status, d.UserID, d.Reason, ident.Now()).Scan(&pending)
	if err != nil || pending > 0 {
		return decided(ctx, tx, d.TurnID, "", err)
	}
	var b pgx.Batch
	queueResume(&b, d.TurnID)
	notices := s.reopen(&b, tenantID)
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return Decided{}, err
	}
	out, err := decided(ctx, tx, d.TurnID, d.TurnID, nil)
	out.Notices = notices
	return out, err
}

func decided(ctx context.Context, tx pgx.Tx, turnID, due string, err error) (Decided, error) {
	if err != nil {
		return Decided{}, err
	}
	t, err := Get(ctx, tx, turnID)
	return Decided{Turn: t, Due: due}, err
}

// queueResume makes a waiting turn one that somebody may claim. It stays the thread's running one: as a queued one it would come behind, or into
// conflict with, the turn that waits behind it.
func queueResume(b *pgx.Batch, turnID string) {
	b.Queue(`update thread_turns set status = 'running', waits_for = null, lease_until = clock_timestamp() where id = $1`, turnID)
}

// lockedTurn is a turn and its thread, both locked, in the order in which Request locks them.
type lockedTurn struct {
	id       string
	status   Status
	waitsFor *WaitsFor
	number   int
	agentID  string
	th       publish.Thread // as an event carries it
	uuid     string
}

func lockTurn(ctx context.Context, tx pgx.Tx, id string) (s lockedTurn, err error) {
	if !ident.Valid(id) {
		return s, fault.Missing("turn")
	}
	var public ident.Thread
	s.id = id
	err = tx.QueryRow(ctx, `select uuid, prefix, number, status, title, metadata::text from threads
		where uuid = (select thread_uuid from thread_turns where id = $1) for no key update`, id).
		Scan(&s.uuid, &public.Prefix, &public.Number, &s.th.Status, &s.th.Title, &s.th.Metadata)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, fault.Missing("turn")
	}
	if err != nil {
		return s, err
	}
	s.th.ID = public.String()
	err = tx.QueryRow(ctx, `select status, waits_for, number, agent_id from thread_turns where id = $1 for no key update`, id).Scan(&s.status, &s.waitsFor, &s.number, &s.agentID)
	return s, err
}

// reopen makes a thread that waits an open one.
func (s *lockedTurn) reopen(b *pgx.Batch, tenantID string) []notify.Notice {
	if s.th.Status != string(thread.Waiting) {
		return nil
	}
	s.th.Status, s.th.UpdatedAt = string(thread.Open), ident.Now()
	b.Queue(`update threads set status = 'open', updated_at = greatest(updated_at, $2) where uuid = $1`, s.uuid, s.th.UpdatedAt)
	return []notify.Notice{notify.Queue(b, tenantID, s.uuid, publish.ThreadUpdate{TenantID: tenantID, ThreadID: s.th.ID, Thread: s.th})}
}

// answer is the result of a question's call, as a step keeps it.
func answer(toolCallID, name, body string) (json.RawMessage, error) {
	output, err := json.Marshal(map[string]string{"answer": body})
	if err != nil {
		return nil, fmt.Errorf("answer: %w", err)
	}
	said := string(output)
	return json.Marshal(thread.ToolResult{ToolCallID: toolCallID, Name: name, Status: thread.ToolOK, Output: &said})
}
