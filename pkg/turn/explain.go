package turn

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// Step is one model call or tool call of a turn, as the API shows it.
type Step struct {
	Number     int         `json:"number"`
	Kind       string      `json:"kind"` // model or tool
	Name       string      `json:"name"` // the model's or the tool's
	Status     string      `json:"status"`
	Request    *string     `json:"request"`  // JSON text
	Response   *string     `json:"response"` // JSON text
	StartedAt  ident.Time  `json:"startedAt"`
	FinishedAt *ident.Time `json:"finishedAt"`
}

// given is a model call's request: what it is given beyond the one before, whose messages it repeats with their answer.
type given struct {
	System    *string         `json:"system,omitempty"`
	Tools     json.RawMessage `json:"tools,omitempty"`
	MaxTokens *int            `json:"maxTokens,omitempty"`
	Messages  []model.Message `json:"messages"`
}

// record is what of a turn explains its steps.
type record struct {
	id       string
	threadID string
	prompt   *prompt
	system   *string
	tools    *string
	summary  *summary
	task     *string // as the model was given it
	steps    []recorded
}

type recorded struct {
	step
	status   string
	started  ident.Time
	finished *ident.Time
}

// Steps are the steps of these turns, in order: exactly what the model was given and answered, and what the tools were, at each. Those of a turn that
// has been pruned are not there.
func Steps(ctx context.Context, q postgres.Querier, turnIDs []string) (map[string][]Step, error) {
	turns, err := records(ctx, q, turnIDs)
	if err != nil {
		return nil, err
	}
	all := map[string][]Step{}
	for _, t := range turns {
		var lines []line
		if t.prompt != nil {
			lines, err = postgres.All(ctx, q, scanLine, `select `+lineColumns+` from messages m where thread_uuid = $2 and position = any($3)
				order by array_position($3, position)`, t.id, t.threadID, t.prompt.Messages)
			if err != nil {
				return nil, err
			}
		}
		if all[t.id], err = t.explain(lines); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func records(ctx context.Context, q postgres.Querier, turnIDs []string) ([]*record, error) {
	byID := map[string]*record{}
	turns, err := postgres.All(ctx, q, func(row pgx.CollectableRow) (*record, error) {
		var t record
		var through *int
		var body *string
		err := row.Scan(&t.id, &t.threadID, &t.prompt, &t.system, &t.tools, &t.task, &through, &body)
		if through != nil {
			t.summary = &summary{through: *through, body: *body}
		}
		byID[t.id] = &t
		return &t, err
	}, `select t.id, coalesce(t.thread_uuid::text, ''), t.prompt, s.body, l.body, k.body, y.through_position, y.body from thread_turns t
		left join prompt_texts s on s.tenant_id = t.tenant_id and s.sha256 = decode(t.prompt->>'system', 'hex')
		left join prompt_texts l on l.tenant_id = t.tenant_id and l.sha256 = decode(t.prompt->>'tools', 'hex')
		left join prompt_texts k on k.tenant_id = t.tenant_id and k.sha256 = decode(t.prompt->>'task', 'hex')
		left join thread_summaries y on y.tenant_id = t.tenant_id and y.thread_uuid = t.thread_uuid and y.through_position = (t.prompt->>'summary')::integer
		where t.id = any($1::uuid[])`, turnIDs)
	if err != nil {
		return nil, err
	}
	rows, err := q.Query(ctx, `select turn_id, number, kind, name, status, response, started_at, finished_at from turn_steps
		where turn_id = any($1::uuid[]) order by turn_id, number`, turnIDs)
	if err != nil {
		return nil, err
	}
	var id string
	var s recorded
	_, err = pgx.ForEachRow(rows, []any{&id, &s.number, &s.kind, &s.name, &s.status, &s.response, &s.started, &s.finished}, func() error {
		byID[id].steps = append(byID[id].steps, s)
		s = recorded{}
		return nil
	})
	return turns, err
}

// explain tells the steps as they came one after the other, as an attempt goes through them.
func (t *record) explain(lines []line) ([]Step, error) {
	var out []Step
	var task string
	if t.task != nil {
		task = *t.task
	}
	next, _, _, _ := conversation(t.summary, task, lines)
	first := true
	var uses []model.ToolUse
	var results []thread.ToolResult
	for _, s := range t.steps {
		shown := Step{Number: s.number, Kind: string(s.kind), Name: s.name, Status: s.status, StartedAt: s.started, FinishedAt: s.finished}
		if s.response != nil && s.status != "waiting" {
			text := string(s.response)
			shown.Response = &text
		}
		if s.kind == toolStep {
			if len(uses) > 0 {
				input := string(uses[0].Input)
				shown.Request, uses = &input, uses[1:]
			}
			var r thread.ToolResult
			if s.status == "finished" && json.Unmarshal(s.response, &r) == nil {
				results = append(results, r)
			}
			out = append(out, shown)
			continue
		}
		if len(results) > 0 {
			next = append(next, model.Message{Role: model.User, Blocks: blocks(results)})
			results = nil
		}
		request := given{Messages: next}
		if first && t.prompt != nil {
			request.System, request.MaxTokens = t.system, &t.prompt.MaxTokens
			if t.tools != nil {
				request.Tools = json.RawMessage(*t.tools)
			}
		}
		next = nil
		if t.prompt != nil { // else nobody has asked the model yet
			text, err := json.Marshal(request)
			if err != nil {
				return nil, err
			}
			shown.Request, first = new(string), false
			*shown.Request = string(text)
		}
		var answer model.Response
		if s.status == "finished" && json.Unmarshal(s.response, &answer) == nil {
			uses = answer.ToolUses()
		}
		out = append(out, shown)
	}
	return out, nil
}
