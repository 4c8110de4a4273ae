package agent

import (
	"github.com/agentplatform/agentplatform/pkg/evaluator"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// DefaultRuntime is the selector of a template that says none.
const DefaultRuntime = "default"

// Template is what agents share; an agent overrides it field by field. It has a model, a runtime and each of the lists that are not null in the API.
type Template struct {
	ID              string            `json:"id"`
	Name            string            `json:"name"`
	Description     *string           `json:"description"`
	IsDefault       bool              `json:"isDefault"` // of agents that are made without one
	ModelID         *string           `json:"modelId"`
	SystemPrompt    *string           `json:"systemPrompt"`
	Runtime         *string           `json:"runtime"`
	Tools           *[]string         `json:"tools"`
	ToolApprovals   *[]string         `json:"toolApprovals"`
	GuardrailID     *string           `json:"guardrailId"`
	SkillPackIDs    *[]string         `json:"skillPackIds"`
	KnowledgeBaseID *string           `json:"knowledgeBaseId"`
	Evaluators      *[]evaluator.Spec `json:"evaluators"` // of its agents' turns
	FetchHosts      *[]string         `json:"fetchHosts"` // that http_fetch may ask
	CreatedAt       ident.Time        `json:"createdAt"`
	UpdatedAt       ident.Time        `json:"updatedAt"`
}

func (t *Template) settings() settings {
	return settings{modelID: &t.ModelID, runtime: &t.Runtime, systemPrompt: &t.SystemPrompt, guardrailID: &t.GuardrailID, knowledgeBaseID: &t.KnowledgeBaseID,
		tools: &t.Tools, toolApprovals: &t.ToolApprovals, skillPackIDs: &t.SkillPackIDs, fetchHosts: &t.FetchHosts, evaluators: &t.Evaluators}
}

// TemplateFields are what a caller sets on a template.
type TemplateFields struct {
	Name         text.Patch[string] `json:"name,omitzero"`
	Description  text.Patch[string] `json:"description,omitzero"`
	SystemPrompt text.Patch[string] `json:"systemPrompt,omitzero"`
	SettingFields
}

// apply changes t by the given fields, completes it and checks the result.
func (f TemplateFields) apply(t *Template) error {
	if f.Name.Set {
		if f.Name.Value == nil {
			return fault.Invalid("name must not be null")
		}
		t.Name = *f.Name.Value
	}
	f.Description.Apply(&t.Description)
	f.SystemPrompt.Apply(&t.SystemPrompt)
	f.SettingFields.apply(t.settings())
	if t.ModelID == nil {
		return fault.Invalid("modelId must not be null")
	}
	if t.Runtime == nil {
		t.Runtime = new(DefaultRuntime)
	}
	for _, list := range []**[]string{&t.Tools, &t.ToolApprovals, &t.FetchHosts} {
		if *list == nil {
			*list = &[]string{}
		}
	}
	if err := checkNames(t.Name, t.Description); err != nil {
		return err
	}
	return t.settings().check()
}
