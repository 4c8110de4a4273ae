package webhook

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/tracker"
)

// checkTask checks what is said of a task tracker's webhook: whose events come, and perhaps the agent of the tasks' threads.
func (s *Settings) checkTask() error {
	switch {
	case s.Prompt != nil:
		return fault.Invalid("prompt is for target_type agent")
	case s.RoutineID != nil:
		return fault.Invalid("routine_id is for target_type routine")
	case s.AgentID != nil && !ident.Valid(*s.AgentID):
		return unknown("agent")
	case s.provider() == nil:
		return fault.Invalid("config.provider is required for target_type task: %s", strings.Join(tracker.Names(), ", "))
	}
	if s.AgentID != nil {
		s.AgentID = new(strings.ToLower(*s.AgentID)) // as the database spells it
	}
	return nil
}

// provider is the tracker; nil: of another target, or none that there is.
func (s *Settings) provider() *string {
	name, _ := s.Config["provider"].(string)
	if _, is := tracker.Of(name); !is || s.TargetType != Task {
		return nil
	}
	return &name
}

// checkDefaultAgent refuses a webhook that names no agent where nobody says which one it is.
func checkDefaultAgent(ctx context.Context, tx pgx.Tx) error {
	found, err := postgres.All(ctx, tx, pgx.RowTo[bool], `select default_agent_id is not null from spaces where is_default`)
	if err == nil && (len(found) == 0 || !found[0]) {
		err = fault.Invalid("agent_id is required: the space has no default agent")
	}
	return err
}

// TaskDoor is what is known of a task tracker's webhook before a delivery belongs to a tenant.
type TaskDoor struct {
	Door
	Provider string
	Enabled  bool
	Secret   int // the version of its secret; 0 or less: it has none
}

// EnterTask takes a token for the webhook of a tracker. A token that never was, and one of another tracker's webhook, are told the same. The database looks
// for the token's hash, so the time that this takes says nothing of a token.
func EnterTask(ctx context.Context, db *postgres.DB, provider, token string) (d TaskDoor, err error) {
	rows, err := db.Lookup().Query(ctx, `select tenant_id, webhook_id, provider, enabled, rate_limit, secret_version from lookup_task_webhook($1)`, hash(token))
	if err != nil {
		return d, err
	}
	_, err = pgx.ForEachRow(rows, []any{&d.TenantID, &d.WebhookID, &d.Provider, &d.Enabled, &d.RateLimit, &d.Secret}, func() error { return nil })
	if err == nil && (d.WebhookID == "" || d.Provider != provider) {
		return TaskDoor{}, ErrTaskToken
	}
	return d, err
}

// ErrTaskToken refuses a delivery: its token is no webhook's of that tracker.
var ErrTaskToken = fault.New(fault.Unauthorized, "no webhook of this provider has this token")

// Delivered queues that a tracker has sent something. The row is the last that a delivery locks.
func Delivered(b *pgx.Batch, webhookID string) { count(b, webhookID) }
