package bedrock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"github.com/agentplatform/agentplatform/pkg/model"
)

// answer puts a stream's events together.
type answer struct {
	parts   []*part // in order of first appearance; response sorts
	stop    types.StopReason
	stopped bool
	usage   *types.TokenUsage
}

// part is one content block under way: text, or a tool use whose input arrives as fragments of JSON text.
type part struct {
	index int32
	tool  *model.ToolUse
	text  strings.Builder // the text, or the tool's input
}

func (a *answer) part(index *int32) *part {
	i := aws.ToInt32(index)
	for _, p := range a.parts {
		if p.index == i {
			return p
		}
	}
	p := &part{index: i}
	a.parts = append(a.parts, p)
	return p
}

// take adds one event. Kinds that we did not ask for (reasoning, citations, whatever comes later) are passed over.
func (a *answer) take(event types.ConverseStreamOutput, s model.Stream) {
	switch e := event.(type) {
	case *types.ConverseStreamOutputMemberContentBlockStart:
		if start, ok := e.Value.Start.(*types.ContentBlockStartMemberToolUse); ok {
			a.part(e.Value.ContentBlockIndex).tool = &model.ToolUse{
				ID: aws.ToString(start.Value.ToolUseId), Name: aws.ToString(start.Value.Name),
			}
		}
	case *types.ConverseStreamOutputMemberContentBlockDelta:
		switch delta := e.Value.Delta.(type) {
		case *types.ContentBlockDeltaMemberText:
			if delta.Value != "" {
				a.part(e.Value.ContentBlockIndex).text.WriteString(delta.Value)
				s.Text(delta.Value)
			}
		case *types.ContentBlockDeltaMemberToolUse:
			a.part(e.Value.ContentBlockIndex).text.WriteString(aws.ToString(delta.Value.Input))
		}
	case *types.ConverseStreamOutputMemberMessageStop:
		a.stop, a.stopped = e.Value.StopReason, true
	case *types.ConverseStreamOutputMemberMetadata:
		a.usage = e.Value.Usage
	}
}

// response is the complete answer, or why there is none. The SDK reports a connection cut between or within frames as a clean end,
// so completeness is judged here: without the stop reason text is missing, without the usage the call could not be paid for.
func (a *answer) response() (model.Response, error) {
	if !a.stopped || a.usage == nil {
		return model.Response{}, model.Failure(model.Broken, true, errors.New("model: the stream ended before stop reason and usage"))
	}
	if a.stop == types.StopReasonMalformedModelOutput || a.stop == types.StopReasonMalformedToolUse {
		return model.Response{}, model.Failure(model.Malformed, true, fmt.Errorf("model: stop reason %s", a.stop))
	}
	slices.SortStableFunc(a.parts, func(x, y *part) int { return int(x.index) - int(y.index) })
	r := model.Response{StopReason: string(a.stop), Usage: model.Usage{
		InputTokens:      int(aws.ToInt32(a.usage.InputTokens)),
		OutputTokens:     int(aws.ToInt32(a.usage.OutputTokens)),
		CacheReadTokens:  int(aws.ToInt32(a.usage.CacheReadInputTokens)),
		CacheWriteTokens: int(aws.ToInt32(a.usage.CacheWriteInputTokens)),
	}}
	for _, p := range a.parts {
		if p.tool == nil {
			if p.text.Len() > 0 {
				r.Blocks = append(r.Blocks, model.Block{Text: p.text.String()})
			}
			continue
		}
		use, err := p.toolUse(a.stop)
		if err != nil {
			return model.Response{}, err
		}
		if slices.ContainsFunc(r.ToolUses(), func(u model.ToolUse) bool { return u.ID == use.ID }) { // which of them a result is of could not be said
			return model.Response{}, model.Failure(model.Malformed, true, fmt.Errorf("model: two tool uses have the id %q", use.ID))
		}
		r.Blocks = append(r.Blocks, model.Block{ToolUse: use})
	}
	return r, nil
}

// toolUse checks the assembled input. No fragments at all is how models call a tool without arguments.
func (p *part) toolUse(stop types.StopReason) (*model.ToolUse, error) {
	use := *p.tool
	raw := []byte(p.text.String())
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = []byte("{}")
	}
	if !isObject(raw) {
		if stop == types.StopReasonMaxTokens { // asking again would end at the same limit
			return nil, model.Failure(model.Truncated, false, fmt.Errorf("model: input of tool %q cut at %d bytes", use.Name, len(raw)))
		}
		return nil, model.Failure(model.Malformed, true, fmt.Errorf("model: input of tool %q (%d bytes) is not a JSON object", use.Name, len(raw)))
	}
	if use.ID == "" || use.Name == "" {
		return nil, model.Failure(model.Malformed, true, errors.New("model: tool use without id or name"))
	}
	var compact bytes.Buffer
	_ = json.Compact(&compact, raw) // valid, see above; one spelling before and after it is stored
	use.Input = compact.Bytes()
	return &use, nil
}

func isObject(raw []byte) bool {
	trimmed := bytes.TrimLeft(raw, " \t\r\n")
	return len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(raw)
}
