package turn

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/budget"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// Run is what a webhook started, a turn or a run of a routine, as the REST API shows it.
type Run struct {
	ID              string          `json:"run_id"`
	WebhookID       string          `json:"webhook_id"`
	Status          RunStatus       `json:"status"`
	Test            bool            `json:"test"`
	ThreadID        *string         `json:"thread_id"`  // public; nil: the target is a routine, or could not be started
	AgentID         *string         `json:"agent_id"`   // nil: the target is a routine
	RoutineID       *string         `json:"routine_id"` // nil: the target is an agent
	Error           *string         `json:"error"`
	InputTokens     int             `json:"input_tokens"`
	OutputTokens    int             `json:"output_tokens"`
	CostUSD         *string         `json:"cost_usd"`    // six fractional digits
	CreatedAt       ident.Time      `json:"created_at"`  // when the call was accepted
	StartedAt       *ident.Time     `json:"started_at"`  // when the agent, or the workflow engine, took it up
	FinishedAt      *ident.Time     `json:"finished_at"` // nil: not yet
	ContextSnapshot json.RawMessage `json:"context_snapshot,omitempty"`
	PayloadPrunedAt *ident.Time     `json:"payload_pruned_at,omitempty"` // since when it has no context_snapshot any more
}

// RunStatus is how far a run is.
type RunStatus string

const (
	RunStarted   RunStatus = "started"
	RunSucceeded RunStatus = "succeeded"
	RunFailed    RunStatus = "failed"
)

// interruptedBy is why a run did not succeed although its turn did not fail.
const interruptedBy = "a later message in the thread interrupted the run"

// cancelledBy is the same of a turn that a person ended.
const cancelledBy = "a person cancelled the run"

// Call is what starts a run, or a turn on time: that has no webhook and no payload.
type Call struct {
	RunID     string
	WebhookID string // "": none
	Payload   []byte // JSON: the body; empty: none
	Test      bool
}

// columns are c's values of webhook_id, context_snapshot and test; nil is null.
func (c Call) columns() (webhookID, payload, test any) {
	if c.WebhookID != "" {
		webhookID = c.WebhookID
	}
	if len(c.Payload) > 0 {
		payload = string(c.Payload)
	}
	return webhookID, payload, c.Test
}

const insertRun = `insert into thread_turns (tenant_id, id, thread_uuid, agent_id, number, status, error, lease_until, started_at, finished_at, queued_at,
	webhook_id, context_snapshot, test, routine_id) `

// Start queues a new thread of t's agent and space, with its first message and the turn that answers it: the run. Whoever
// commits must then dispatch the turn; an error of the batch is first made readable by budget.Refusal.
func Start(b *pgx.Batch, tenantID string, c Call, t *thread.Thread, first Words, p Price) error {
	tokens := thread.EstimateTokens(first.Body) + payloadTokens(c.Payload)
	t.TokenCount = int64(tokens)
	thread.Queue(b, tenantID, t, 1)
	webhookID, payload, test := c.columns()
	b.Queue(insertRun+`values ($1, $2, $3, $4, 1, 'queued', null, clock_timestamp() + $5, null, null, $6, $7, $8, $9, null)`,
		tenantID, c.RunID, t.UUID, t.AgentID, DispatchGrace, t.CreatedAt, webhookID, payload, test)
	queueMessage(b, tenantID, standing{uuid: t.UUID, turnNumber: 1}, c.RunID, first, tokens)
	return reserve(b, budget.Turn{ID: c.RunID, AgentID: t.AgentID, SpaceID: t.SpaceID}, p)
}

// Refuse queues the record of a run whose target, an agent, cannot be started.
func Refuse(b *pgx.Batch, tenantID string, c Call, agentID, reason string) {
	refuse(b, tenantID, c, &agentID, nil, reason)
}

// RefuseRoutine is Refuse for a routine.
func RefuseRoutine(b *pgx.Batch, tenantID string, c Call, routineID, reason string) {
	refuse(b, tenantID, c, nil, &routineID, reason)
}

func refuse(b *pgx.Batch, tenantID string, c Call, agentID, routineID *string, reason string) {
	webhookID, payload, test := c.columns()
	b.Queue(insertRun+`values ($1, $2, null, $3, null, 'failed', $4, null, $5, $5, $5, $6, $7, $8, $9)`,
		tenantID, c.RunID, agentID, reason, ident.Now(), webhookID, payload, test, routineID)
}

// RecordRoutine queues the record of a run of a routine, which has the record's id: it is no turn, and goes on until the end of the run is written
// (schema/sql/00017_routine_steps.sql).
func RecordRoutine(b *pgx.Batch, tenantID string, c Call, routineID string, at ident.Time) {
	webhookID, payload, test := c.columns()
	b.Queue(insertRun+`values ($1, $2, null, null, null, 'waiting', null, null, null, null, $3, $4, $5, $6, $7)`,
		tenantID, c.RunID, at, webhookID, payload, test, routineID)
}

const runColumns = `t.id, t.webhook_id, t.status, t.test, th.prefix, th.number, t.agent_id, t.routine_id, t.error, t.input_tokens, t.output_tokens, t.cost_micros,
	t.queued_at, t.started_at, t.finished_at`

func scanRun(row pgx.CollectableRow) (Run, error) { return scanRunWith(row) }

func scanRunWith(row pgx.CollectableRow, more ...any) (Run, error) {
	var r Run
	var status Status
	var prefix *string
	var number, micros *int64
	err := row.Scan(append([]any{&r.ID, &r.WebhookID, &status, &r.Test, &prefix, &number, &r.AgentID, &r.RoutineID, &r.Error, &r.InputTokens, &r.OutputTokens, &micros,
		&r.CreatedAt, &r.StartedAt, &r.FinishedAt}, more...)...)
	r.ThreadID, r.CostUSD = publicID(prefix, number), dollars(micros)
	switch status {
	case Succeeded:
		r.Status = RunSucceeded
	case Failed:
		r.Status = RunFailed
	case Interrupted:
		r.Status = RunFailed
		reason := interruptedBy
		r.Error = &reason
	default:
		r.Status = RunStarted
	}
	return r, err
}

// RunCursor is the sort key of a webhook's runs.
type RunCursor struct{ ID string }

// Cursor is r's place in the list.
func (r Run) Cursor() RunCursor { return RunCursor{r.ID} }

// Runs are up to limit runs of a webhook after the cursor, newest first, without their payloads.
func Runs(ctx context.Context, q postgres.Querier, webhookID string, after *RunCursor, limit int) ([]Run, error) {
	var id *string
	if after != nil {
		id = &after.ID
	}
	return postgres.All(ctx, q, scanRun, `select `+runColumns+from+`where t.webhook_id = $1 and ($2::uuid is null or t.id < $2) order by t.id desc limit $3`,
		webhookID, id, limit)
}

// GetRun is one run of a webhook, without its payload.
func GetRun(ctx context.Context, q postgres.Querier, webhookID, id string) (Run, error) {
	return oneRun(ctx, q, scanRun, ``, webhookID, id)
}

// GetRunWithPayload is one run of a webhook, with its payload while that is kept.
func GetRunWithPayload(ctx context.Context, q postgres.Querier, webhookID, id string) (Run, error) {
	return oneRun(ctx, q, func(row pgx.CollectableRow) (Run, error) {
		var payload []byte
		var pruned *ident.Time
		r, err := scanRunWith(row, &payload, &pruned)
		r.ContextSnapshot, r.PayloadPrunedAt = payload, pruned
		return r, err
	}, `, t.context_snapshot, t.payload_pruned_at`, webhookID, id)
}

func oneRun(ctx context.Context, q postgres.Querier, scan pgx.RowToFunc[Run], more, webhookID, id string) (Run, error) {
	if !ident.Valid(webhookID) || !ident.Valid(id) {
		return Run{}, fault.Missing("run")
	}
	return postgres.One(ctx, q, "run", scan, `select `+runColumns+more+from+`where t.webhook_id = $1 and t.id = $2`, webhookID, id)
}
