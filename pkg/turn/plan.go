package turn

import (
	"context"
	"encoding/json"

	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/tool"
)

// plan asks the model what to do next, or takes the answer that an earlier attempt was given.
func (r *Runner) plan(ctx context.Context, a *attempt, out *stream) (model.Response, *step, error) {
	a.phases.begin(Planning)
	s := a.journal.take()
	var response model.Response
	if s.finished {
		if err := json.Unmarshal(s.response, &response); err != nil {
			return response, nil, err
		}
		if text := response.Text(); text != "" {
			out.Text(text) // this attempt's reply starts anew, under a message id of its own
		}
	} else {
		out.status(publish.Thinking, "waiting for the model")
		var err error
		response, err = r.Model.Converse(ctx, a.request(r.Tools), out)
		if err != nil {
			return response, nil, err
		}
		if s.response, err = json.Marshal(response); err != nil {
			return response, nil, err
		}
	}
	out.keep()
	a.usage = a.usage.Add(response.Usage)
	a.history = append(a.history, model.Message{Role: model.Assistant, Blocks: response.Blocks})
	return response, s, nil
}

func (a *attempt) request(tools tool.Registry) model.Request {
	q := model.Request{ModelID: a.agent.modelID, Messages: a.history, MaxTokens: maxTokens, System: "You are " + a.agent.name + "."}
	if a.agent.systemPrompt != nil && *a.agent.systemPrompt != "" {
		q.System += "\n\n" + *a.agent.systemPrompt
	}
	if a.payloads {
		q.System += "\n\n" + dataOnly
	}
	for _, t := range tools.Granted(a.agent.tools) {
		q.Tools = append(q.Tools, model.Tool{Name: t.Name, Description: t.Description, Schema: t.Schema})
	}
	return q
}
