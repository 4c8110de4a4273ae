package thread

import (
	"context"
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

const columns = `uuid, prefix, number, channel, status, title, agent_id, space_id, metadata::text, token_count, created_at, updated_at`

func scan(row pgx.CollectableRow) (Thread, error) {
	var t Thread
	var id ident.Thread
	err := row.Scan(&t.UUID, &id.Prefix, &id.Number, &t.Channel, &t.Status, &t.Title, &t.AgentID, &t.SpaceID, &t.Metadata, &t.TokenCount,
		&t.CreatedAt, &t.UpdatedAt)
	t.ID, t.Prefix = id.String(), id.Prefix
	return t, err
}

// Filter narrows the thread list; nil takes all.
type Filter struct {
	Channel *Channel `json:"channel"`
	Status  *Status  `json:"status"`
	AgentID *string  `json:"agentId"`
}

// Cursor is the sort key of the thread list.
type Cursor struct {
	UpdatedAt ident.Time
	UUID      string
}

// Cursor is t's place in the list.
func (t Thread) Cursor() Cursor { return Cursor{t.UpdatedAt, t.UUID} }

// List is up to limit threads after the cursor, newest activity first.
func List(ctx context.Context, q postgres.Querier, f Filter, after *Cursor, limit int) ([]Thread, error) {
	if f.AgentID != nil && !ident.Valid(*f.AgentID) {
		return nil, fault.Invalid("filter.agentId is not an id")
	}
	// Conditions are added, not switched off by nulls, and the limit is in the text: the planner then walks the index that fits the filter,
	// and one prepared plan serves all.
	where, args := `where true`, []any{}
	and := func(condition string, values ...any) {
		args = append(args, values...)
		where += ` and ` + condition
	}
	if f.AgentID != nil {
		and(`agent_id = `+placeholder(args), *f.AgentID)
	}
	if f.Channel != nil {
		and(`channel = `+placeholder(args), *f.Channel)
	}
	if f.Status != nil {
		and(`status = `+placeholder(args), *f.Status)
	}
	if after != nil {
		and(`(updated_at, uuid) < (`+placeholder(args)+`, `+placeholder(append(args, nil))+`)`, after.UpdatedAt.Time, after.UUID)
	}
	return postgres.All(ctx, q, scan, `select `+columns+` from threads `+where+` order by updated_at desc, uuid desc limit `+strconv.Itoa(limit), args...)
}

// Get is one thread by its public id.
func Get(ctx context.Context, q postgres.Querier, id string) (Thread, error) {
	return one(ctx, q, id, ``)
}

// Lock is Get, and nobody else numbers messages or turns in the thread until tx ends.
func Lock(ctx context.Context, tx pgx.Tx, id string) (Thread, error) {
	return one(ctx, tx, id, ` for no key update`)
}

func one(ctx context.Context, q postgres.Querier, id, locking string) (Thread, error) {
	public, ok := ident.ParseThread(id)
	if !ok {
		return Thread{}, fault.Missing("thread")
	}
	return postgres.One(ctx, q, "thread", scan, `select `+columns+` from threads where prefix = $1 and number = $2`+locking, public.Prefix, public.Number)
}

// Create opens a thread. Without an agent it takes the default space's default agent.
func Create(ctx context.Context, tx pgx.Tx, tenantID string, n New) (Thread, error) {
	if err := Check(n.Title, n.Metadata); err != nil {
		return Thread{}, err
	}
	if n.Channel == "" {
		n.Channel = Chat
	}
	t := Thread{Channel: n.Channel, Title: n.Title, Metadata: n.Metadata}
	if err := choose(ctx, tx, n.AgentID, &t); err != nil {
		return Thread{}, err
	}
	var b pgx.Batch
	Queue(&b, tenantID, &t, 0)
	err := tx.SendBatch(ctx, &b).Close() // completes t
	return t, err
}

// Queue adds a new thread of a known agent and space to a batch, which adds as many messages and turns to it too. The batch's answer
// completes t: its id, and its metadata as stored.
func Queue(b *pgx.Batch, tenantID string, t *Thread, turns int) {
	t.UUID, t.Prefix, t.Status, t.CreatedAt = ident.New(), string(t.Channel), Open, ident.Now()
	t.UpdatedAt = t.CreatedAt
	b.Queue(`with counter as (
			insert into thread_counters (tenant_id, prefix, last_number) values ($1, $3, 1)
			on conflict (tenant_id, prefix) do update set last_number = thread_counters.last_number + 1 returning last_number)
		insert into threads (tenant_id, uuid, prefix, number, channel, status, title, agent_id, space_id, metadata, token_count, message_count, turn_count,
			created_at, updated_at)
		select $1, $2, $3, last_number, $4, $5, $6, $7, $8, $9::jsonb, $10, $11, $11, $12, $12 from counter returning number, metadata::text`,
		tenantID, t.UUID, t.Prefix, t.Channel, t.Status, t.Title, t.AgentID, t.SpaceID, t.Metadata, t.TokenCount, turns, t.CreatedAt).QueryRow(func(row pgx.Row) error {
		id := ident.Thread{Prefix: t.Prefix}
		err := row.Scan(&id.Number, &t.Metadata)
		t.ID = id.String()
		return err
	})
}

// choose sets the thread's space and agent.
func choose(ctx context.Context, tx pgx.Tx, agentID string, t *Thread) error {
	var fallback *string
	if err := tx.QueryRow(ctx, `select id, default_agent_id from spaces where is_default`).Scan(&t.SpaceID, &fallback); err != nil {
		return err
	}
	switch {
	case agentID != "":
		t.AgentID = agentID
	case fallback != nil:
		t.AgentID = *fallback
	default:
		return fault.Invalid("agentId is required: the space has no default agent")
	}
	if !ident.Valid(t.AgentID) {
		return fault.Missing("agent")
	}
	var archived bool
	err := tx.QueryRow(ctx, `select status = 'archived' from agents where id = $1`, t.AgentID).Scan(&archived)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fault.Missing("agent")
	case err != nil:
		return err
	case archived:
		return fault.Invalid("the agent is archived")
	}
	return nil
}

// Update changes the given fields; it reports whether anything changed.
func Update(ctx context.Context, tx pgx.Tx, id string, f Fields) (Thread, bool, error) {
	t, err := Lock(ctx, tx, id)
	if err != nil {
		return Thread{}, false, err
	}
	before := t
	if err := f.apply(&t); err != nil {
		return Thread{}, false, err
	}
	if t.Status == before.Status && same(t.Title, before.Title) && same(t.Metadata, before.Metadata) {
		return t, false, nil
	}
	err = tx.QueryRow(ctx, `update threads set status = $2, title = $3, metadata = $4::jsonb, updated_at = clock_timestamp() where uuid = $1
		returning metadata::text, updated_at`, t.UUID, t.Status, t.Title, t.Metadata).Scan(&t.Metadata, &t.UpdatedAt)
	return t, true, err
}

func same(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }
