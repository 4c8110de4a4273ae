package step

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/callback"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// ApprovalStatus is what became of a question to a person.
type ApprovalStatus string

const (
	Asked          ApprovalStatus = "waiting"
	Approved       ApprovalStatus = "approved"
	DeniedApproval ApprovalStatus = "denied"
	Over           ApprovalStatus = "over" // nobody waits for the decision any more, and there was none
)

// Decision is what a person says.
type Decision string

const (
	Approve Decision = "APPROVED"
	Deny    Decision = "DENIED"
)

// Approval is a question that a run puts to a person, as the API shows it.
type Approval struct {
	StepID      string         `json:"stepId"`
	RunID       string         `json:"runId"`
	RoutineID   string         `json:"routineId"`
	RoutineName string         `json:"routineName"`
	State       string         `json:"state"`
	Prompt      string         `json:"prompt"`
	Details     *string        `json:"details"`   // JSON text
	Approvers   []string       `json:"approvers"` // users, who may decide besides owners and admins
	Status      ApprovalStatus `json:"status"`
	DecidedBy   *string        `json:"decidedBy"` // a user
	Comment     *string        `json:"comment"`
	CreatedAt   ident.Time     `json:"createdAt"`
	DecidedAt   *ident.Time    `json:"decidedAt"`

	step     Status
	prompt   *string
	details  json.RawMessage
	decision *Decision
	closed   *ident.Time
	callback *string
}

const approvalColumns = `s.id, s.run_id, r.routine_id, n.name, s.state, s.prompt, s.details, s.approvers, s.status, s.decision, s.decided_by, s.comment, s.created_at, s.finished_at, s.callback_id`

const approvalTables = ` from routine_steps s join routine_runs r on r.tenant_id = s.tenant_id and r.id = s.run_id
	join routines n on n.tenant_id = r.tenant_id and n.id = r.routine_id`

func (a *Approval) fields() []any {
	return []any{&a.StepID, &a.RunID, &a.RoutineID, &a.RoutineName, &a.State, &a.prompt, &a.details, &a.Approvers, &a.step, &a.decision, &a.DecidedBy, &a.Comment,
		&a.CreatedAt, &a.closed, &a.callback}
}

// settled is a with what follows from its fields.
func (a Approval) settled() Approval {
	if a.prompt != nil {
		a.Prompt = *a.prompt
	}
	if a.Approvers == nil {
		a.Approvers = []string{}
	}
	a.Details = asText(a.details)
	switch {
	case a.decision != nil && *a.decision == Approve:
		a.Status, a.DecidedAt = Approved, a.closed
	case a.decision != nil:
		a.Status, a.DecidedAt = DeniedApproval, a.closed
	case a.step == Waiting:
		a.Status = Asked
	default:
		a.Status = Over
	}
	return a
}

func scanApproval(row pgx.CollectableRow) (Approval, error) {
	var a Approval
	err := row.Scan(a.fields()...)
	return a.settled(), err
}

// maxDetails bounds what a person is shown besides the prompt, in bytes of JSON.
const maxDetails = 64 << 10

// ask puts the question.
func (n newStep) ask(ctx context.Context, tx pgx.Tx) (Begun, error) {
	var in struct {
		Prompt    string          `json:"prompt"`
		Approvers []string        `json:"approvers"`
		Details   json.RawMessage `json:"details"`
	}
	if err := json.Unmarshal(n.Input, &in); err != nil {
		return Begun{}, err
	}
	if len(in.Details) > maxDetails {
		return Begun{}, fault.Invalid("details is longer than %d bytes", maxDetails)
	}
	if err := checkApprovers(ctx, tx, in.Approvers); err != nil {
		return Begun{}, err
	}
	if _, err := n.wait(ctx, tx, ""); err != nil {
		return Begun{}, err
	}
	var details any
	if len(in.Details) > 0 {
		details = in.Details
	}
	_, err := tx.Exec(ctx, `update routine_steps set prompt = $2, approvers = $3, details = $4 where id = $1`, n.id, in.Prompt, in.Approvers, details)
	return Begun{StepID: n.id}, err
}

// checkApprovers refuses who could never decide.
func checkApprovers(ctx context.Context, q postgres.Querier, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	strangers, err := postgres.All(ctx, q, pgx.RowTo[string],
		`select a.approver::text from unnest($1::uuid[]) a (approver) where not exists (select from users u where u.id = a.approver and u.status = 'active')`, ids)
	if err == nil && len(strangers) > 0 {
		err = fault.Invalid("approvers: %s is no active user of this organisation", strangers[0])
	}
	return err
}

// Approvals are up to limit questions that wait for a person, the oldest first, after the cursor.
func Approvals(ctx context.Context, q postgres.Querier, after *ApprovalCursor, limit int) ([]Approval, error) {
	var id *string
	if after != nil {
		id = &after.ID
	}
	return postgres.All(ctx, q, scanApproval, `select `+approvalColumns+approvalTables+`
		where s.verb = 'wait_for_approval' and s.status = 'waiting' and ($1::uuid is null or s.id > $1)
			and exists (select from callbacks c where c.tenant_id = s.tenant_id and c.id = s.callback_id) -- else the engine has said that the task is over
		order by s.id limit $2`, id, limit)
}

// ApprovalCursor is the sort key of the list.
type ApprovalCursor struct{ ID string }

// Cursor is a's place in the list.
func (a Approval) Cursor() ApprovalCursor { return ApprovalCursor{a.StepID} }

// GetApproval is one question of a run, and the callback by which the engine is told of the answer.
func GetApproval(ctx context.Context, q postgres.Querier, runID, stepID string) (a Approval, callbackID string, err error) {
	return getApproval(ctx, q, runID, stepID, ``)
}

func getApproval(ctx context.Context, q postgres.Querier, runID, stepID, locking string) (a Approval, callbackID string, err error) {
	if !ident.Valid(runID) || !ident.Valid(stepID) {
		return a, "", fault.Missing("step that waits for approval")
	}
	a, err = postgres.One(ctx, q, "step that waits for approval", scanApproval, `select `+approvalColumns+approvalTables+`
		where s.id = $1 and s.run_id = $2 and s.verb = 'wait_for_approval'`+locking, stepID, runID)
	if a.callback != nil {
		callbackID = *a.callback
	}
	return a, callbackID, err
}

// Decided is what a person decides.
type Decided struct {
	RunID    string
	StepID   string
	Decision Decision
	Comment  *string // up to 4 KiB; of a denial, what the definition is told
}

// approval is the result of wait_for_approval.
type approval struct {
	Decision string     `json:"decision"` // approved
	By       string     `json:"by"`       // a user
	Comment  *string    `json:"comment"`
	At       ident.Time `json:"at"`
}

// Decide notes what an owner, an admin or a named approver has decided; the engine can be told by the callback once that is committed. The first decision
// counts: the same again is answered by it, another one is refused. When nobody waits any more, the step is over, which is the answer and no error.
func Decide(ctx context.Context, tx pgx.Tx, by tenant.Caller, d Decided) (a Approval, callbackID string, err error) {
	if d.Decision != Approve && d.Decision != Deny {
		return a, "", fault.Invalid("decision must be %s or %s", Approve, Deny)
	}
	if err := text.CheckOptional("comment", d.Comment, 4<<10); err != nil {
		return a, "", err
	}
	a, callbackID, err = getApproval(ctx, tx, d.RunID, d.StepID, ` for no key update of s`)
	switch {
	case err != nil:
		return a, "", err
	case by.Role != tenant.Owner && by.Role != tenant.Admin && !slices.Contains(a.Approvers, by.UserID):
		return a, "", fault.New(fault.Forbidden, "only owners, admins and the approvers that the step names may decide")
	case a.decision != nil && *a.decision == d.Decision:
		return a, callbackID, nil
	case a.decision != nil:
		return a, "", fault.Invalid("the step was %s already", a.Status)
	case a.Status == Over:
		return a, "", nil
	}
	waits, err := callback.Waits(ctx, tx, callbackID)
	if err != nil {
		return a, "", err
	}
	now := ident.Now()
	if !waits {
		a.Status = Over
		_, err = tx.Exec(ctx, `update routine_steps set status = 'cut', finished_at = $2 where id = $1`, a.StepID, now)
		return a, "", err
	}
	a.Status, a.DecidedBy, a.Comment, a.DecidedAt = Approved, &by.UserID, d.Comment, &now
	if d.Decision == Deny {
		a.Status = DeniedApproval
	}
	if err := d.write(ctx, tx, a, callbackID); err != nil {
		return a, "", err
	}
	return a, callbackID, nil
}

func (d Decided) write(ctx context.Context, tx pgx.Tx, a Approval, callbackID string) error {
	status, errorType, reason := Succeeded, (*string)(nil), (*string)(nil)
	if d.Decision == Deny {
		status, errorType, reason = Failed, new(Denied), new("a person said no")
		if d.Comment != nil && *d.Comment != "" {
			reason = d.Comment
		}
	}
	_, err := tx.Exec(ctx, `update routine_steps set status = $2, decision = $3, decided_by = $4, comment = $5, finished_at = $6, error_type = $7, error = $8 where id = $1`,
		a.StepID, status, d.Decision, a.DecidedBy, d.Comment, a.DecidedAt, errorType, reason)
	if err != nil {
		return err
	}
	if d.Decision == Deny {
		return callback.Fail(ctx, tx, callbackID, *errorType, *reason)
	}
	result, err := json.Marshal(approval{Decision: string(Approved), By: *a.DecidedBy, Comment: d.Comment, At: *a.DecidedAt})
	return errors.Join(err, callback.Answer(ctx, tx, callbackID, result))
}
