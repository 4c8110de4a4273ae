package notify

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/publish"
)

// The bounds of a page. Events are small and many, so it holds more of them than a page of anything else; and no more text than an answer carries.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
	pageBytes    = 1 << 20 // of the events' texts; the first event is always there
)

// Page is a part of a thread's events (SDL: ThreadEventConnection).
type Page struct {
	Items        []publish.ThreadEvent `json:"items"`
	Last         int                   `json:"last"`         // the thread's newest number; 0: none yet
	PrunedBefore int                   `json:"prunedBefore"` // the first number that is still kept, or will be given out next
}

// After are up to limit events of a thread behind a number, in order and without a gap between them.
func After(ctx context.Context, q postgres.Querier, tenantID, threadID string, after, limit int) (Page, error) {
	if after < 0 {
		return Page{}, fault.Invalid("after must be 0 or more")
	}
	if limit < 1 || limit > MaxLimit {
		return Page{}, fault.Invalid("limit must be from 1 to %d", MaxLimit)
	}
	public, ok := ident.ParseThread(threadID)
	if !ok {
		return Page{}, fault.Missing("thread")
	}
	// One statement, so that all of it is of one moment.
	rows, err := q.Query(ctx, `select coalesce(s.last, 0),
			coalesce((select min(f.sequence) from thread_events f where f.thread_uuid = th.uuid), coalesce(s.last, 0) + 1), p.*
		from threads th left join thread_sequences s on s.thread_uuid = th.uuid
			left join lateral (
				select `+names+` from (
					select `+columns+`, `+size+` as size, sum(`+size+`) over (order by e.sequence rows unbounded preceding) as bytes
					from (select * from thread_events where thread_uuid = th.uuid and sequence > $3 order by sequence limit $4) e `+message+`) e
				where bytes <= $5 or bytes = size) p on true
		where th.prefix = $1 and th.number = $2 order by p.sequence`, public.Prefix, public.Number, after, limit, pageBytes)
	if err != nil {
		return Page{}, err
	}
	found := false
	page := Page{Items: []publish.ThreadEvent{}}
	r := row{thread: public}
	_, err = pgx.ForEachRow(rows, append([]any{&page.Last, &page.PrunedBefore}, r.scan()...), func() error {
		found = true
		if r.sequence == nil {
			return nil
		}
		e, err := r.event(tenantID)
		if err != nil {
			return fmt.Errorf("event %d of thread %s: %w", *r.sequence, threadID, err)
		}
		page.Items = append(page.Items, e)
		return nil
	})
	if err == nil && !found {
		err = fault.Missing("thread")
	}
	return page, err
}

const (
	message = `left join messages m on m.thread_uuid = e.thread_uuid and m.position = e.position`
	stored  = `thread_events e ` + message
	columns = `e.sequence, e.event::text as event, m.id, m.role, m.body, m.tool_calls, m.tool_results, m.token_count, m.model, m.turn_id as message_turn_id, m.metadata::text as metadata, m.created_at as message_at`
	names   = `sequence, event, id, role, body, tool_calls, tool_results, token_count, model, message_turn_id, metadata, message_at`
	size    = `coalesce(octet_length(e.event::text), octet_length(m.body) + coalesce(octet_length(m.tool_calls::text), 0) + coalesce(octet_length(m.tool_results::text), 0)
		+ coalesce(octet_length(m.metadata::text), 0), 0) + 1`
)

// row is a stored event, or nothing where sequence is nil.
type row struct {
	thread   ident.Thread
	sequence *int
	stored   *string // nil: it tells of the message

	id, role, body *string
	calls          []publish.ToolCall
	results        []publish.ToolResult
	tokens         *int
	model, turnID  *string
	metadata       *string
	at             *ident.Time
}

// scan is where columns go to. Each row must be used before the next.
func (r *row) scan() []any {
	return []any{&r.sequence, &r.stored, &r.id, &r.role, &r.body, &r.calls, &r.results, &r.tokens, &r.model, &r.turnID, &r.metadata, &r.at}
}

func (r *row) event(tenantID string) (publish.ThreadEvent, error) {
	if r.stored == nil {
		if r.id == nil {
			return nil, errors.New("its message is not there")
		}
		defer func() { r.calls, r.results = nil, nil }() // the next row's lists must not be written over these
		id := r.thread.String()
		return publish.NewMessage{TenantID: tenantID, ThreadID: id, Sequence: *r.sequence, Message: publish.Message{ID: *r.id, ThreadID: id, Role: *r.role, Body: *r.body,
			ToolCalls: r.calls, ToolResults: r.results, TokenCount: r.tokens, Model: r.model, TurnID: r.turnID, Metadata: r.metadata, CreatedAt: *r.at}}, nil
	}
	e, err := publish.Decode([]byte(*r.stored))
	if err != nil {
		return nil, err
	}
	t, ok := e.(publish.ThreadEvent)
	if !ok {
		return nil, fmt.Errorf("%T is no event of a thread", e)
	}
	return t.Numbered(*r.sequence), nil
}
