package turn

import (
	"context"
	"encoding/json"

	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/publish"
)

// plan asks the model what to do next, or takes the answer that an earlier attempt was given.
func (r *Runner) plan(ctx context.Context, a *attempt, out *stream) (model.Response, *step, error) {
	ctx = a.begin(ctx, Planning)
	s := a.journal.take()
	a.ahead = 0
	var response model.Response
	if s.finished {
		if err := json.Unmarshal(s.response, &response); err != nil {
			return response, nil, err
		}
		if text := response.Text(); text != "" && s.number > a.said.steps {
			out.Text(text) // this attempt's reply starts anew, under a message id of its own
		}
	} else {
		out.status(publish.Thinking, "waiting for the model")
		request := a.request()
		a.prompt.note(request)
		var to model.Stream = out
		checked, calling, err := a.guarded(ctx, out)
		if err != nil {
			return response, nil, err
		}
		if checked != nil {
			to = checked
		}
		r.signal("model asked")
		response, err = r.Model.Converse(calling, request, to)
		if checked != nil {
			response, err = checked.answer(a, response, err)
		}
		if err != nil {
			return response, nil, err
		}
		if s.response, err = json.Marshal(response); err != nil {
			return response, nil, err
		}
		r.signal("model answered")
	}
	out.keep()
	a.usage = a.usage.Add(response.Usage)
	a.history = append(a.history, model.Message{Role: model.Assistant, Blocks: response.Blocks})
	return response, s, nil
}

func (a *attempt) request() model.Request {
	q := model.Request{ModelID: a.agent.modelID, Messages: a.history, MaxTokens: maxTokens, System: "You are " + a.agent.name + "."}
	if a.agent.systemPrompt != nil && *a.agent.systemPrompt != "" {
		q.System += "\n\n" + *a.agent.systemPrompt
	}
	if a.payloads {
		q.System += "\n\n" + dataOnly
	}
	if a.events || a.task != nil {
		q.System += "\n\n" + taskOnly
	}
	if a.summary != nil {
		q.System += "\n\n" + summaryOnly
	}
	for _, t := range a.tools.Granted(a.agent.tools) {
		q.Tools = append(q.Tools, model.Tool{Name: t.Name, Description: t.Description, Schema: t.Schema})
	}
	return q
}

// leave ends what the attempt has open elsewhere.
func (a *attempt) leave() {
	if a.offer != nil {
		a.offer.Close()
	}
}
