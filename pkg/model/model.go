package model

import (
	"context"
	"encoding/json"
	"strings"
)

// Model answers a conversation. Implementations may be used by many goroutines at once.
type Model interface {
	// Converse sends r and gives the text to s as it arrives; s may be nil. It ends soon after ctx does.
	// The error is an *Error; the text given to s before it is void.
	Converse(ctx context.Context, r Request, s Stream) (Response, error)
}

// Stream receives an answer's text while it is made. Its methods are called by one goroutine, never after Converse has returned.
type Stream interface {
	// Text is the next piece, never empty.
	Text(delta string)
	// Restart says that the attempt failed: all text so far is void and the answer begins again.
	Restart()
}

// Role says who speaks in a message.
type Role string

const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Stop reasons that callers branch on, as Bedrock spells them; others pass through unchanged.
const (
	StopEndTurn   = "end_turn"
	StopToolUse   = "tool_use"
	StopMaxTokens = "max_tokens"
)

// Request is one model call.
type Request struct {
	ModelID   string    `json:"modelId"`             // model or inference profile id, or its ARN
	System    string    `json:"system,omitempty"`    // system prompt; empty = none
	Messages  []Message `json:"messages"`            // oldest first, the first one the user's; neighbours of the same role are joined
	Tools     []Tool    `json:"tools,omitempty"`     // what the model may ask for
	MaxTokens int       `json:"maxTokens,omitempty"` // cap on the answer's tokens; 0 = the model's own
}

// Message is what one side said.
type Message struct {
	Role   Role    `json:"role"`
	Blocks []Block `json:"blocks"`
}

// Block is one part of a message: exactly one field is set.
type Block struct {
	Text       string      `json:"text,omitempty"`
	ToolUse    *ToolUse    `json:"toolUse,omitempty"`    // assistant only
	ToolResult *ToolResult `json:"toolResult,omitempty"` // user only
}

// ToolUse is the model asking for a tool.
type ToolUse struct {
	ID    string          `json:"id"` // made by the model; its result names it
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"` // always a JSON object
}

// Statuses of a ToolResult.
const (
	ResultOK    = "ok"
	ResultError = "error"
)

// ToolResult answers a ToolUse. Output wins over Text when both are set.
type ToolResult struct {
	ToolUseID string          `json:"toolUseId"`
	Status    string          `json:"status"`           // ResultOK or ResultError
	Output    json.RawMessage `json:"output,omitempty"` // any JSON value
	Text      string          `json:"text,omitempty"`
}

// Tool is something that the model may ask for.
type Tool struct {
	Name        string          `json:"name"` // [a-zA-Z0-9_-]{1,64}
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"` // JSON Schema of the input, an object; empty = any object
}

// Usage counts the tokens of one call. The four are disjoint: InputTokens leaves out what was read from or written to the cache.
type Usage struct {
	InputTokens      int `json:"inputTokens"`
	OutputTokens     int `json:"outputTokens"`
	CacheReadTokens  int `json:"cacheReadTokens,omitempty"`
	CacheWriteTokens int `json:"cacheWriteTokens,omitempty"`
}

// Total is all tokens of the call.
func (u Usage) Total() int {
	return u.InputTokens + u.OutputTokens + u.CacheReadTokens + u.CacheWriteTokens
}

// Add is the usage of both calls together.
func (u Usage) Add(o Usage) Usage {
	u.InputTokens += o.InputTokens
	u.OutputTokens += o.OutputTokens
	u.CacheReadTokens += o.CacheReadTokens
	u.CacheWriteTokens += o.CacheWriteTokens
	return u
}

// Response is a complete answer.
type Response struct {
	Blocks     []Block `json:"blocks"` // text and tool uses in the model's order
	StopReason string  `json:"stopReason"`
	Usage      Usage   `json:"usage"` // of the attempt that succeeded
}

// Text is the answer's text blocks, concatenated.
func (r Response) Text() string {
	var b strings.Builder
	for _, block := range r.Blocks {
		b.WriteString(block.Text)
	}
	return b.String()
}

// ToolUses are the tools that the model asks for, in its order.
func (r Response) ToolUses() []ToolUse {
	var uses []ToolUse
	for _, block := range r.Blocks {
		if block.ToolUse != nil {
			uses = append(uses, *block.ToolUse)
		}
	}
	return uses
}

// Discard is the Stream of a caller that wants none.
var Discard Stream = silent{}

type silent struct{}

func (silent) Text(string) {}
func (silent) Restart()    {}
