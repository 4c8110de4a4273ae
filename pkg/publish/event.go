package publish

import (
	"encoding/json"

	"github.com/agentplatform/agentplatform/pkg/ident"
)

// Activity is what an agent is doing right now (SDL: AgentActivityStatus).
type Activity string

const (
	Idle        Activity = "idle"         // not processing
	Thinking    Activity = "thinking"     // waiting for the model
	CallingTool Activity = "calling_tool" // executing a tool call
	Streaming   Activity = "streaming"    // streaming the final response
	Failed      Activity = "error"        // the turn failed
)

// NewMessage is published when a user or the agent added a message; for the agent's reply it marks completion.
type NewMessage struct {
	TenantID string  `json:"tenantId"`
	ThreadID string  `json:"threadId"` // public id, <PREFIX>-<n>
	Sequence int     `json:"sequence"` // in the thread, from 1; 0: not stored yet
	Message  Message `json:"message"`
}

// Message is a message as an event carries it (SDL: Message).
type Message struct {
	ID          string       `json:"id"`
	ThreadID    string       `json:"threadId"`
	Role        string       `json:"role"` // user, assistant, system, tool
	Body        string       `json:"body"`
	ToolCalls   []ToolCall   `json:"toolCalls"`   // nil: null
	ToolResults []ToolResult `json:"toolResults"` // nil: null
	TokenCount  *int         `json:"tokenCount"`
	Model       *string      `json:"model"`
	TurnID      *string      `json:"turnId"`
	Metadata    *string      `json:"metadata"` // AWSJSON: JSON text
	CreatedAt   ident.Time   `json:"createdAt"`
}

// ToolCall is what the model asked a tool to do (SDL: ToolCall).
type ToolCall struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Input string `json:"input"` // AWSJSON: JSON text
}

// ToolResult is what came of a tool call (SDL: ToolResult).
type ToolResult struct {
	ToolCallID string  `json:"toolCallId"`
	Name       string  `json:"name"`
	Status     string  `json:"status"` // ok, error, denied, timeout
	Output     *string `json:"output"` // AWSJSON: JSON text
	Error      *string `json:"error"`
	DurationMs int     `json:"durationMs"` // milliseconds
}

// AgentStatus is published when the agent's state in a thread changed.
type AgentStatus struct {
	TenantID string   `json:"tenantId"`
	ThreadID string   `json:"threadId"`
	Sequence int      `json:"sequence"`
	AgentID  string   `json:"agentId"`
	Status   Activity `json:"status"`
	Activity *string  `json:"activity"` // for people to read
}

// ThreadUpdate is published when a thread's status, title or metadata changed.
type ThreadUpdate struct {
	TenantID string `json:"tenantId"`
	ThreadID string `json:"threadId"`
	Sequence int    `json:"sequence"`
	Thread   Thread `json:"thread"`
}

// Thread is a thread as an event carries it (SDL: EventThread).
type Thread struct {
	ID        string     `json:"id"`     // public id
	Status    string     `json:"status"` // open, closed, failed, waiting
	Title     *string    `json:"title"`
	Metadata  *string    `json:"metadata"` // AWSJSON: JSON text
	UpdatedAt ident.Time `json:"updatedAt"`
}

// StreamChunk is a piece of the reply while it is written.
type StreamChunk struct {
	TenantID  string `json:"tenantId"`
	ThreadID  string `json:"threadId"`
	Sequence  int    `json:"sequence"`
	MessageID string `json:"messageId"` // the id that the finished message will have
	Chunk     string `json:"chunk"`
	Done      bool   `json:"done"` // true on the last one, whose chunk may be empty
}

// AgentActivity is what an agent is doing in one of its threads; published beside AgentStatus, to the agent's subscribers.
type AgentActivity struct {
	TenantID  string     `json:"tenantId"`
	AgentID   string     `json:"agentId"`
	ThreadID  string     `json:"threadId"`
	Status    Activity   `json:"status"`
	Activity  *string    `json:"activity"` // for people to read
	Timestamp ident.Time `json:"timestamp"`
}

func (e NewMessage) Address() Address    { return Address{ThreadEvents, e.TenantID, e.ThreadID} }
func (e AgentStatus) Address() Address   { return Address{ThreadEvents, e.TenantID, e.ThreadID} }
func (e ThreadUpdate) Address() Address  { return Address{ThreadEvents, e.TenantID, e.ThreadID} }
func (e StreamChunk) Address() Address   { return Address{ThreadEvents, e.TenantID, e.ThreadID} }
func (e AgentActivity) Address() Address { return Address{AgentActivities, e.TenantID, e.AgentID} }

func (e NewMessage) Number() int   { return e.Sequence }
func (e AgentStatus) Number() int  { return e.Sequence }
func (e ThreadUpdate) Number() int { return e.Sequence }
func (e StreamChunk) Number() int  { return e.Sequence }

func (e NewMessage) Numbered(n int) ThreadEvent {
	e.Sequence = n
	return e
}

func (e AgentStatus) Numbered(n int) ThreadEvent {
	e.Sequence = n
	return e
}

func (e ThreadUpdate) Numbered(n int) ThreadEvent {
	e.Sequence = n
	return e
}

func (e StreamChunk) Numbered(n int) ThreadEvent {
	e.Sequence = n
	return e
}

func (NewMessage) Repeatable() bool    { return true }
func (AgentStatus) Repeatable() bool   { return false }
func (ThreadUpdate) Repeatable() bool  { return true }
func (StreamChunk) Repeatable() bool   { return false }
func (AgentActivity) Repeatable() bool { return false }

func (e NewMessage) MarshalJSON() ([]byte, error) {
	type members NewMessage // without the methods, else Marshal would call itself
	return object("NewMessageEvent", members(e))
}

func (e AgentStatus) MarshalJSON() ([]byte, error) {
	type members AgentStatus
	return object("AgentStatusEvent", members(e))
}

func (e ThreadUpdate) MarshalJSON() ([]byte, error) {
	type members ThreadUpdate
	return object("ThreadUpdateEvent", members(e))
}

func (e StreamChunk) MarshalJSON() ([]byte, error) {
	type members StreamChunk
	return object("StreamChunkEvent", members(e))
}

func (e AgentActivity) MarshalJSON() ([]byte, error) {
	type members AgentActivity
	return object("AgentActivityEvent", members(e))
}

// object is the members' JSON object with __typename put first.
func object(typename string, members any) ([]byte, error) {
	rest, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, len(rest)+len(typename)+len(`{"__typename":"",`))
	b = append(b, `{"__typename":"`...)
	b = append(b, typename...)
	b = append(b, `",`...)
	return append(b, rest[1:]...), nil
}
