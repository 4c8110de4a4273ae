// Package agent holds agents and their templates: who takes turns, with which model, prompt and limits.
package agent

import (
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

// Agent is an agent as the API shows it. A nil setting takes the template's.
type Agent struct {
	ID              string            `json:"id"`
	Name            string            `json:"name"`
	Description     *string           `json:"description"`
	Status          Status            `json:"status"`
	ModelID         *string           `json:"modelId"`
	Runtime         *string           `json:"runtime"` // the selector
	SystemPrompt    *string           `json:"systemPrompt"`
	TemplateID      string            `json:"templateId"`
	SkillPackIDs    *[]string         `json:"skillPackIds"`
	KnowledgeBaseID *string           `json:"knowledgeBaseId"`
	GuardrailID     *string           `json:"guardrailId"`
	Tools           *[]string         `json:"tools"`         // grants
	ToolApprovals   *[]string         `json:"toolApprovals"` // of the granted ones, those whose calls a person approves
	Evaluators      *[]evaluator.Spec `json:"evaluators"`    // of its turns
	FetchHosts      *[]string         `json:"fetchHosts"`    // that http_fetch may ask
	RateLimits      *RateLimits       `json:"rateLimits"`
	CreatedAt       ident.Time        `json:"createdAt"`
	UpdatedAt       ident.Time        `json:"updatedAt"`
}

func (a *Agent) settings() settings {
	return settings{modelID: &a.ModelID, runtime: &a.Runtime, systemPrompt: &a.SystemPrompt, guardrailID: &a.GuardrailID, knowledgeBaseID: &a.KnowledgeBaseID,
		tools: &a.Tools, toolApprovals: &a.ToolApprovals, skillPackIDs: &a.SkillPackIDs, fetchHosts: &a.FetchHosts, evaluators: &a.Evaluators}
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
	Name         text.Patch[string] `json:"name,omitzero"`
	Description  text.Patch[string] `json:"description,omitzero"`
	Status       text.Patch[Status] `json:"status,omitzero"`
	SystemPrompt text.Patch[string] `json:"systemPrompt,omitzero"`
	TemplateID   text.Patch[string] `json:"templateId,omitzero"`
	SettingFields
	RateLimits text.Patch[RateLimits] `json:"rateLimits,omitzero"`
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
	f.RateLimits.Apply(&a.RateLimits)
	f.SettingFields.apply(a.settings())
	return a.check()
}

func (a *Agent) check() error {
	if err := checkNames(a.Name, a.Description); err != nil {
		return err
	}
	if err := a.settings().check(); err != nil {
		return err
	}
	return a.RateLimits.check()
}
