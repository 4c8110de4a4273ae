package offline

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// The parts of a Converse request that matter here. Fields that the offline model does not know are passed over, as AWS does;
// content that it cannot read (images, documents) is refused.
type request struct {
	System          []systemBlock    `json:"system"`
	Messages        []message        `json:"messages"`
	ToolConfig      *toolConfig      `json:"toolConfig"`
	InferenceConfig *inferenceConfig `json:"inferenceConfig"`
}

type systemBlock struct {
	Text *string `json:"text"`
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

type block struct {
	Text       *string         `json:"text"`
	ToolUse    *toolUse        `json:"toolUse"`
	ToolResult *toolResult     `json:"toolResult"`
	CachePoint json.RawMessage `json:"cachePoint"`
}

type toolUse struct {
	ID    string          `json:"toolUseId"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type toolResult struct {
	ID      string          `json:"toolUseId"`
	Status  string          `json:"status"`
	Content []resultContent `json:"content"`
}

type resultContent struct {
	Text *string         `json:"text"`
	JSON json.RawMessage `json:"json"`
}

type toolConfig struct {
	Tools []struct {
		Spec *struct {
			Name        string `json:"name"`
			Description string `json:"description"`
			InputSchema struct {
				JSON json.RawMessage `json:"json"`
			} `json:"inputSchema"`
		} `json:"toolSpec"`
		CachePoint json.RawMessage `json:"cachePoint"`
	} `json:"tools"`
}

type inferenceConfig struct {
	MaxTokens *int `json:"maxTokens"`
}

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// decode reads and checks a request by Bedrock's rules; the messages name the place as Bedrock's do.
func decode(body []byte) (*request, *refusal) {
	var r request
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, invalid("the request is not valid JSON of the expected shape: %v", err)
	}
	if bad := r.checkTools(); bad != nil {
		return nil, bad
	}
	if c := r.InferenceConfig; c != nil && c.MaxTokens != nil && *c.MaxTokens < 1 {
		return nil, invalid("inferenceConfig.maxTokens must be at least 1")
	}
	for i, s := range r.System {
		if s.Text != nil && strings.TrimSpace(*s.Text) == "" {
			return nil, invalid("The text field in the SystemContentBlock object at system.%d is blank.", i)
		}
	}
	if len(r.Messages) == 0 {
		return nil, invalid("messages must hold at least one message")
	}
	for i := range r.Messages {
		if bad := r.checkMessage(i); bad != nil {
			return nil, bad
		}
	}
	if r.Messages[len(r.Messages)-1].Role != "user" {
		return nil, invalid("the conversation must end with a user message")
	}
	return &r, nil
}

func (r *request) checkTools() *refusal {
	if r.ToolConfig == nil {
		return nil
	}
	if len(r.ToolConfig.Tools) == 0 {
		return invalid("toolConfig.tools must hold at least one tool")
	}
	for i, t := range r.ToolConfig.Tools {
		switch {
		case t.Spec == nil && t.CachePoint == nil:
			return invalid("toolConfig.tools.%d is not a tool", i)
		case t.Spec == nil:
		case !toolName.MatchString(t.Spec.Name):
			return invalid("toolConfig.tools.%d.toolSpec.name must match [a-zA-Z0-9_-]{1,64}", i)
		case !isObject(t.Spec.InputSchema.JSON):
			return invalid("toolConfig.tools.%d.toolSpec.inputSchema.json must be a JSON object", i)
		}
	}
	return nil
}

// checkMessage checks message i and that it answers the tool calls of the one before.
func (r *request) checkMessage(i int) *refusal {
	m := r.Messages[i]
	if m.Role != "user" && m.Role != "assistant" {
		return invalid("messages.%d.role must be user or assistant", i)
	}
	if i == 0 && m.Role != "user" {
		return invalid("A conversation must start with a user message. Try again with a conversation that starts with a user message.")
	}
	if i > 0 && m.Role == r.Messages[i-1].Role {
		return invalid("A conversation must alternate between user and assistant roles. " +
			"Make sure the conversation alternates between user and assistant roles and try again.")
	}
	if len(m.Content) == 0 {
		return invalid("The content field in the Message object at messages.%d is empty. Add a ContentBlock object to the content field and try again.", i)
	}
	answers := map[string]bool{}
	for j, b := range m.Content {
		if bad := r.checkBlock(m.Role, b, i, j); bad != nil {
			return bad
		}
		if b.ToolResult != nil {
			answers[b.ToolResult.ID] = true
		}
	}
	asked := map[string]bool{}
	if i > 0 {
		for _, b := range r.Messages[i-1].Content {
			if b.ToolUse != nil {
				asked[b.ToolUse.ID] = true
				if !answers[b.ToolUse.ID] {
					return invalid("Expected toolResult blocks at messages.%d.content for the following Ids: %s", i, b.ToolUse.ID)
				}
			}
		}
	}
	for id := range answers {
		if !asked[id] {
			return invalid("messages.%d.content has a toolResult for %q, which the previous turn did not ask for", i, id)
		}
	}
	return nil
}

func (r *request) checkBlock(role string, b block, i, j int) *refusal {
	if (b.ToolUse != nil || b.ToolResult != nil) && r.ToolConfig == nil {
		return invalid("The toolConfig field must be defined when using toolUse and toolResult content blocks.")
	}
	switch {
	case b.Text != nil:
		if strings.TrimSpace(*b.Text) == "" {
			return invalid("The text field in the ContentBlock object at messages.%d.content.%d is blank. Add text to the text field, and try again.", i, j)
		}
	case b.ToolUse != nil:
		if role != "assistant" || b.ToolUse.ID == "" || !toolName.MatchString(b.ToolUse.Name) || !isObject(b.ToolUse.Input) {
			return invalid("messages.%d.content.%d.toolUse is invalid: an assistant's, with id, name and a JSON object as input", i, j)
		}
	case b.ToolResult != nil:
		if role != "user" || b.ToolResult.ID == "" {
			return invalid("messages.%d.content.%d.toolResult is invalid: a user's, with the id of its tool use", i, j)
		}
		for k, c := range b.ToolResult.Content {
			if c.Text == nil && !isObject(c.JSON) {
				return invalid("The format of the value at messages.%d.content.%d.toolResult.content.%d.json is invalid. Provide a json object for the field and try again.", i, j, k)
			}
		}
	case b.CachePoint != nil:
	default:
		return invalid("messages.%d.content.%d: the offline model reads text, tool uses and tool results only", i, j)
	}
	return nil
}

func isObject(raw json.RawMessage) bool { // raw comes from a decoder: valid
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) > 0 && raw[0] == '{'
}

// prompt is the system prompt as one text.
func (r *request) prompt() string {
	var parts []string
	for _, s := range r.System {
		if s.Text != nil {
			parts = append(parts, *s.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// text is a message's text blocks, a line each.
func (m message) text() string { return strings.Join(m.texts(), "\n") }

// texts are what was said, without the data that came with it.
func (m message) texts() (said []string) {
	for _, b := range m.Content {
		if b.Text != nil && !strings.HasPrefix(*b.Text, dataBegin) && !isMaterial(*b.Text) {
			said = append(said, *b.Text)
		}
	}
	return said
}

// The marks of a webhook call's body.
const dataBegin, dataEnd = "<webhook_payload>", "</webhook_payload>"

// data is what came with the message, as JSON; "" for nothing.
func (m message) data() string {
	for _, b := range m.Content {
		if b.Text == nil {
			continue
		}
		if data, is := strings.CutPrefix(*b.Text, dataBegin); is {
			return strings.TrimSuffix(data, dataEnd)
		}
	}
	return ""
}

// newest is the last text block: where several messages of the user wait for one answer, the newest of them.
func (m message) newest() string {
	said := m.texts()
	if len(said) == 0 {
		return ""
	}
	return said[len(said)-1]
}

// text is what a tool answered: its texts as they are, its JSON in one line.
func (t toolResult) text() string {
	var parts []string
	for _, c := range t.Content {
		if c.Text != nil {
			parts = append(parts, *c.Text)
			continue
		}
		var compact bytes.Buffer
		_ = json.Compact(&compact, c.JSON)
		parts = append(parts, compact.String())
	}
	return strings.Join(parts, " ")
}
