package thread

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// Role is who speaks.
type Role string

const (
	User      Role = "user"
	Assistant Role = "assistant"
	System    Role = "system"
	Tool      Role = "tool"
)

// Message is a message as the API shows it.
type Message struct {
	ID          string       `json:"id"`
	ThreadID    string       `json:"threadId"` // public
	Role        Role         `json:"role"`
	Body        string       `json:"body"`
	ToolCalls   []ToolCall   `json:"toolCalls"`
	ToolResults []ToolResult `json:"toolResults"`
	TokenCount  int          `json:"tokenCount"`
	Model       *string      `json:"model"`
	TurnID      *string      `json:"turnId"`
	Metadata    *string      `json:"metadata"` // a JSON object, as text: what came with it
	CreatedAt   ident.Time   `json:"createdAt"`

	Position int `json:"-"` // in the thread, from 1
}

// ToolCall is what the model asked a tool to do.
type ToolCall struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Input string `json:"input"` // JSON
}

// ToolResult is what came of it.
type ToolResult struct {
	ToolCallID string     `json:"toolCallId"`
	Name       string     `json:"name"`
	Status     ToolStatus `json:"status"`
	Output     *string    `json:"output"` // JSON
	Error      *string    `json:"error"`
	DurationMs int64      `json:"durationMs"`
}

// ToolStatus is how a tool call ended.
type ToolStatus string

const (
	ToolOK      ToolStatus = "ok"
	ToolError   ToolStatus = "error"
	ToolDenied  ToolStatus = "denied"
	ToolTimeout ToolStatus = "timeout"
)

// MaxBody is the largest message body, in bytes: an AppSync event must carry it.
const MaxBody = 128 << 10

// MessageCursor is the sort key of a thread's messages.
type MessageCursor struct{ Position int }

// Cursor is m's place in the list.
func (m Message) Cursor() MessageCursor { return MessageCursor{m.Position} }

// Order is the order of a thread's messages.
type Order string

const (
	OldestFirst Order = "OLDEST_FIRST"
	NewestFirst Order = "NEWEST_FIRST"
)

// Messages are up to limit messages of each thread after the cursor, in one query, by thread UUID.
func Messages(ctx context.Context, q postgres.Querier, threads []Ref, order Order, after *MessageCursor, limit int) (map[string][]Message, error) {
	uuids := make([]string, len(threads))
	public := make(map[string]string, len(threads))
	for i, t := range threads {
		uuids[i] = t.UUID
		public[t.UUID] = t.ID
	}
	from, direction := `m.position > $2`, `asc`
	start := 0
	if order == NewestFirst {
		from, direction = `m.position < $2`, `desc`
		start = 1<<31 - 1
	}
	if after != nil {
		start = after.Position
	}
	rows, err := q.Query(ctx, `select m.thread_uuid, m.id, m.position, m.role, m.body, m.tool_calls, m.tool_results, m.token_count, m.model, m.turn_id, m.metadata::text, m.created_at
		from unnest($1::uuid[]) as t (uuid) cross join lateral (
			select * from messages m where m.thread_uuid = t.uuid and `+from+` order by m.position `+direction+` limit $3) m`, uuids, start, limit)
	if err != nil {
		return nil, err
	}
	byThread := make(map[string][]Message, len(threads))
	var uuid string
	var m Message
	_, err = pgx.ForEachRow(rows, []any{&uuid, &m.ID, &m.Position, &m.Role, &m.Body, &m.ToolCalls, &m.ToolResults, &m.TokenCount, &m.Model, &m.TurnID, &m.Metadata, &m.CreatedAt},
		func() error {
			m.ThreadID = public[uuid]
			byThread[uuid] = append(byThread[uuid], m)
			m = Message{}
			return nil
		})
	return byThread, err
}

func placeholder(args []any) string { return `$` + strconv.Itoa(len(args)+1) }
