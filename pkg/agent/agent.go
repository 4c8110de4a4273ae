// Package agent holds agents and their templates: who takes turns, with which model, prompt and limits.
package agent

import (
	"regexp"
	"slices"

	"github.com/agentplatform/agentplatform/pkg/evaluator"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// Status is where an agent is in its life.
type Status string

const (
	Created   Status = "created"
	Active    Status = "active"
	Suspended Status = "suspended"
	Archived  Status = "archived" // final
)

// moves is the state table; the same status is no move.
var moves = map[Status][]Status{
	Created:   {Active, Archived},
	Active:    {Suspended, Archived},
	Suspended: {Active, Archived},
	Archived:  {},
}

// Check refuses a status that cannot follow s.
func (s Status) Check(next Status) error {
	if s == next || slices.Contains(moves[s], next) {
		return nil
	}
	return fault.Invalid("an agent in status %s cannot become %s; allowed: %v", s, next, moves[s])
}

// TakesTurns reports whether turns may start.
func (s Status) TakesTurns() bool { return s == Created || s == Active }

// CheckTurns refuses a turn where none may start.
func (s Status) CheckTurns() error {
	if s.TakesTurns() {
		return nil
	}
	return fault.New(fault.Forbidden, "the agent is %s and takes no turns", s)
}

// Agent is an agent as the API shows it.
type Agent struct {
	ID              string            `json:"id"`
	Name            string            `json:"name"`
	Description     *string           `json:"description"`
	Status          Status            `json:"status"`
	SystemPrompt    *string           `json:"systemPrompt"`
	TemplateID      string            `json:"templateId"`
	SkillPackIDs    *[]string         `json:"skillPackIds"`
	KnowledgeBaseID *string           `json:"knowledgeBaseId"`
	GuardrailID     *string           `json:"guardrailId"`   // nil: the template's
	Tools           *[]string         `json:"tools"`         // grants; nil: the template's
	ToolApprovals   *[]string         `json:"toolApprovals"` // of the granted ones, those whose calls a person approves; nil: the template's
	Evaluators      *[]evaluator.Spec `json:"evaluators"`    // of its turns; nil: the template's
	FetchHosts      *[]string         `json:"fetchHosts"`    // that http_fetch may ask; nil: the template's
	RateLimits      *RateLimits       `json:"rateLimits"`
	CreatedAt       ident.Time        `json:"createdAt"`
	UpdatedAt       ident.Time        `json:"updatedAt"`
}

// RateLimits is how many turns may start in any period of that length; nil is no limit.
type RateLimits struct {
	TurnsPerMinute *int `json:"turnsPerMinute"`
	TurnsPerHour   *int `json:"turnsPerHour"`
	TurnsPerDay    *int `json:"turnsPerDay"`
}

func (l *RateLimits) check() error {
	if l == nil {
		return nil
	}
	for name, n := range map[string]*int{"turnsPerMinute": l.TurnsPerMinute, "turnsPerHour": l.TurnsPerHour, "turnsPerDay": l.TurnsPerDay} {
		if n != nil && *n < 1 {
			return fault.Invalid("rateLimits.%s must be 1 or more", name)
		}
	}
	return nil
}

// Fields are what a caller sets on an agent.
type Fields struct {
	Name            text.Patch[string]           `json:"name,omitzero"`
	Description     text.Patch[string]           `json:"description,omitzero"`
	Status          text.Patch[Status]           `json:"status,omitzero"`
	SystemPrompt    text.Patch[string]           `json:"systemPrompt,omitzero"`
	TemplateID      text.Patch[string]           `json:"templateId,omitzero"`
	SkillPackIDs    text.Patch[[]string]         `json:"skillPackIds,omitzero"`
	KnowledgeBaseID text.Patch[string]           `json:"knowledgeBaseId,omitzero"`
	GuardrailID     text.Patch[string]           `json:"guardrailId,omitzero"`
	Tools           text.Patch[[]string]         `json:"tools,omitzero"`
	ToolApprovals   text.Patch[[]string]         `json:"toolApprovals,omitzero"`
	Evaluators      text.Patch[[]evaluator.Spec] `json:"evaluators,omitzero"` // whoever calls has checked their schemas: grade.CheckAgents
	FetchHosts      text.Patch[[]string]         `json:"fetchHosts,omitzero"`
	RateLimits      text.Patch[RateLimits]       `json:"rateLimits,omitzero"`
}

// apply changes a by the given fields and checks the result.
func (f Fields) apply(a *Agent) error {
	if f.Name.Set {
		if f.Name.Value == nil {
			return fault.Invalid("name must not be null")
		}
		a.Name = *f.Name.Value
	}
	if f.Status.Set {
		if f.Status.Value == nil {
			return fault.Invalid("status must not be null")
		}
		if err := a.Status.Check(*f.Status.Value); err != nil {
			return err
		}
		a.Status = *f.Status.Value
	}
	if f.TemplateID.Set && f.TemplateID.Value != nil {
		a.TemplateID = *f.TemplateID.Value
	}
	f.Description.Apply(&a.Description)
	f.SystemPrompt.Apply(&a.SystemPrompt)
	f.SkillPackIDs.Apply(&a.SkillPackIDs)
	f.KnowledgeBaseID.Apply(&a.KnowledgeBaseID)
	f.GuardrailID.Apply(&a.GuardrailID)
	f.Tools.Apply(&a.Tools)
	f.ToolApprovals.Apply(&a.ToolApprovals)
	f.RateLimits.Apply(&a.RateLimits)
	f.Evaluators.Apply(&a.Evaluators)
	f.FetchHosts.Apply(&a.FetchHosts)
	return a.check()
}

func (a *Agent) check() error {
	if err := text.Check("name", a.Name, 1, 200); err != nil {
		return err
	}
	if err := text.CheckOptional("description", a.Description, 4<<10); err != nil {
		return err
	}
	if err := text.CheckOptional("systemPrompt", a.SystemPrompt, 64<<10); err != nil {
		return err
	}
	if err := text.CheckOptional("knowledgeBaseId", a.KnowledgeBaseID, 200); err != nil {
		return err
	}
	if a.SkillPackIDs != nil {
		if len(*a.SkillPackIDs) > 50 {
			return fault.Invalid("skillPackIds holds more than 50 entries")
		}
		for _, id := range *a.SkillPackIDs {
			if err := text.Check("skillPackIds", id, 1, 200); err != nil {
				return err
			}
		}
	}
	if err := checkGrants("tools", a.Tools); err != nil {
		return err
	}
	if err := checkGrants("toolApprovals", a.ToolApprovals); err != nil {
		return err
	}
	if err := checkFetchHosts(a.FetchHosts); err != nil {
		return err
	}
	if a.Evaluators != nil {
		checked, err := evaluator.CheckAgents(*a.Evaluators)
		if err != nil {
			return err
		}
		a.Evaluators = &checked
	}
	return a.RateLimits.check()
}

// grants are words of the tool registry: a tool's name or capability, or the beginning of names and a *.
var grants = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}\*?$|^\*$`)

func checkGrants(field string, words *[]string) error {
	if words == nil {
		return nil
	}
	if len(*words) > 200 {
		return fault.Invalid("%s holds more than 200 entries", field)
	}
	for _, w := range *words {
		if !grants.MatchString(w) {
			return fault.Invalid("%s holds %q, which is no tool's name or capability: letters, digits, _ and -, at most 64, and a * at the end for all that begin so", field, w)
		}
	}
	return nil
}
