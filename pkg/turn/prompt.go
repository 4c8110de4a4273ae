package turn

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// line is a message as a model is given it.
type line struct {
	position  int
	role      thread.Role
	body      string
	payload   []byte // what came with a webhook's call
	turnID    string // "": none
	unchecked bool   // it is not the agent's, and no guardrail has decided about it
	asked     bool   // the turn at work is asked it, or the one that it repeats was
	answers   string // the call of the turn at work that asked for it: it is in the call's step
}

// lineColumns are of messages m, where $1 is the turn at work. A message that no user sent may be a webhook's: what came with its call goes along.
const lineColumns = `position, role, coalesce(model_body, body),
	case when user_id is null and role = 'user' then (select coalesce(r.model_payload, r.context_snapshot::json) from thread_turns r where r.id = m.turn_id) end,
	coalesce(turn_id::text, ''), role in ('user', 'system') and not checked, turn_id in ($1, (select o.retry_of from thread_turns o where o.id = $1)),
	case when turn_id = $1 then coalesce(tool_call_id, '') else '' end`

func scanLine(row pgx.CollectableRow) (line, error) { return scanLineWith(row) }

func scanLineWith(row pgx.CollectableRow, more ...any) (l line, err error) {
	var asked *bool
	err = row.Scan(append([]any{&l.position, &l.role, &l.body, &l.payload, &l.turnID, &l.unchecked, &asked, &l.answers}, more...)...)
	l.asked = asked != nil && *asked
	return l, err
}

// assemble makes the conversation of the attempt's lines.
func (a *attempt) assemble() {
	a.prompt.task = ""
	if a.task != nil {
		a.prompt.task = taskBlock(a.task)
	}
	a.history, a.prompt.Messages, a.payloads, a.events = conversation(a.summary, a.prompt.task, a.lines)
	a.prompt.Summary = nil
	if a.summary != nil {
		a.prompt.Summary = &a.summary.through
	}
}

// conversation is what the model is given of these messages, behind the summary of what was said before and the task that they are about, where there are
// such; and which. A conversation begins with the user; a budget may have cut between a question and its answer. What has happened to a task is told as the
// user's.
func conversation(s *summary, task string, lines []line) (history []model.Message, positions []int, payloads, events bool) {
	if s != nil {
		history = []model.Message{{Role: model.User, Blocks: []model.Block{{Text: s.block()}}}}
	}
	if task != "" {
		history = append(history, model.Message{Role: model.User, Blocks: []model.Block{{Text: task}}})
	}
	for _, l := range lines {
		if len(history) == 0 && l.role == thread.Assistant || l.answers != "" {
			continue
		}
		m := model.Message{Role: model.Role(l.role), Blocks: []model.Block{{Text: l.body}}}
		switch {
		case l.payload != nil:
			m.Blocks = []model.Block{{Text: besidePayload(l.body)}, {Text: payloadBlock(l.payload)}}
			payloads = true
		case l.role == thread.System:
			m = model.Message{Role: model.User, Blocks: []model.Block{{Text: eventBlock(l.body)}}}
			events = true
		}
		history, positions = append(history, m), append(positions, l.position)
	}
	return history, positions, payloads, events
}

// prompt is what a turn's model calls begin with, as its record keeps it. What follows in the turn is in its steps.
type prompt struct {
	System    string `json:"system"`            // the SHA-256 of a text of prompt_texts, in hex
	Task      string `json:"task,omitempty"`    // likewise, of the task that the thread is about; "": none
	Tools     string `json:"tools"`             // likewise: a JSON list
	Summary   *int   `json:"summary,omitempty"` // the position through which it goes; nil: none
	Messages  []int  `json:"messages"`          // positions in the thread
	MaxTokens int    `json:"maxTokens"`

	task    string            // as the model is given it; "": none
	texts   map[string]string // by their hashes
	written bool
}

// note takes what a request begins with.
func (p *prompt) note(r model.Request) {
	tools, err := json.Marshal(r.Tools)
	if err != nil { // schemas are JSON: they have been compiled
		tools = []byte("[]")
	}
	p.texts = map[string]string{}
	keep := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		name := hex.EncodeToString(sum[:])
		p.texts[name] = text
		return name
	}
	p.System, p.Tools, p.MaxTokens, p.Task = keep(r.System), keep(string(tools)), r.MaxTokens, ""
	if p.task != "" {
		p.Task = keep(p.task)
	}
}

// queue writes it with the turn, once an attempt.
func (p *prompt) queue(b *pgx.Batch, a *attempt) {
	if p.texts == nil || p.written {
		return
	}
	p.written = true
	for _, name := range slices.Sorted(maps.Keys(p.texts)) { // in one order, so that no two turns wait for each other
		b.Queue(`select keep_prompt_text(decode($1, 'hex'), $2)`, name, p.texts[name])
	}
	b.Queue(`update thread_turns set prompt = $2 where id = $1`, a.turnID, p)
}
