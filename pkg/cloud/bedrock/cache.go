package bedrock

import (
	"regexp"

	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"github.com/agentplatform/agentplatform/pkg/model"
)

// cacheable are the models that keep a prompt's beginning for the next call (Bedrock User Guide, "Prompt caching for faster model inference"); others
// refuse a cache point.
var cacheable = regexp.MustCompile(`anthropic\.claude-(3-7|3-5-haiku|(sonnet|opus|haiku)-[4-9])|amazon\.nova-`)

// cacheFrom is how many characters of prompt are worth a cache point: below about a thousand tokens no model keeps anything.
const cacheFrom = 4_000

// cache marks how far the prompt's beginning stays the same: up to the tools, up to the system prompt, and up to the last message, which the next call
// of the turn, or the next message within minutes, begins with too. A model reads tools, system prompt and messages in this order.
func cache(r model.Request, input *bedrockruntime.ConverseStreamInput) {
	if !cacheable.MatchString(r.ModelID) {
		return
	}
	point := types.CachePointBlock{Type: types.CachePointTypeDefault}
	tools := 0
	for _, t := range r.Tools {
		tools += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	if input.ToolConfig != nil && tools >= cacheFrom {
		input.ToolConfig.Tools = append(input.ToolConfig.Tools, &types.ToolMemberCachePoint{Value: point})
	}
	if len(input.System) > 0 && len(r.System) >= cacheFrom {
		input.System = append(input.System, &types.SystemContentBlockMemberCachePoint{Value: point})
	}
	if last := len(input.Messages) - 1; last >= 0 && tools+len(r.System)+size(r.Messages) >= cacheFrom {
		m := &input.Messages[last]
		m.Content = append(m.Content, &types.ContentBlockMemberCachePoint{Value: point})
	}
}

// size is about how much the messages say, in bytes.
func size(messages []model.Message) (n int) {
	for _, m := range messages {
		for _, b := range m.Blocks {
			n += len(b.Text)
			if b.ToolUse != nil {
				n += len(b.ToolUse.Input)
			}
			if b.ToolResult != nil {
				n += len(b.ToolResult.Output) + len(b.ToolResult.Text)
			}
		}
	}
	return n
}
