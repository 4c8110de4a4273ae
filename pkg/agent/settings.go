package agent

import (
	"context"
	"regexp"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/agentcore"
	"github.com/agentplatform/agentplatform/pkg/evaluator"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// settings are the fields that a template gives and an agent may override: where they are in either. A nil field of an agent takes the template's.
type settings struct {
	modelID, runtime, systemPrompt, guardrailID, knowledgeBaseID **string
	tools, toolApprovals, skillPackIDs, fetchHosts               **[]string
	evaluators                                                   **[]evaluator.Spec
}

// settingColumns are those of settings, in both tables.
const settingColumns = `model_id, runtime, system_prompt, guardrail_id, knowledge_base_id, tools, approvals, skill_pack_ids, fetch_hosts, evaluators`

// places are where to scan settingColumns to.
func (s settings) places() []any {
	return []any{s.modelID, s.runtime, s.systemPrompt, s.guardrailID, s.knowledgeBaseID, s.tools, s.toolApprovals, s.skillPackIDs, s.fetchHosts, s.evaluators}
}

// values are what to write to settingColumns.
func (s settings) values() []any {
	return []any{*s.modelID, *s.runtime, *s.systemPrompt, *s.guardrailID, *s.knowledgeBaseID, *s.tools, *s.toolApprovals, *s.skillPackIDs, *s.fetchHosts, *s.evaluators}
}

// SettingFields are what a caller sets of settings, on an agent or a template; the system prompt, which is one of them, stands where it always stood: a
// client token's input is told by its bytes.
type SettingFields struct {
	SkillPackIDs    text.Patch[[]string]         `json:"skillPackIds,omitzero"`
	KnowledgeBaseID text.Patch[string]           `json:"knowledgeBaseId,omitzero"`
	GuardrailID     text.Patch[string]           `json:"guardrailId,omitzero"`
	Tools           text.Patch[[]string]         `json:"tools,omitzero"`
	ToolApprovals   text.Patch[[]string]         `json:"toolApprovals,omitzero"`
	Evaluators      text.Patch[[]evaluator.Spec] `json:"evaluators,omitzero"` // whoever calls has checked their schemas: grade.CheckAgents
	FetchHosts      text.Patch[[]string]         `json:"fetchHosts,omitzero"`
	ModelID         text.Patch[string]           `json:"modelId,omitzero"`
	Runtime         text.Patch[string]           `json:"runtime,omitzero"`
}

func (f SettingFields) apply(s settings) {
	f.SkillPackIDs.Apply(s.skillPackIDs)
	f.KnowledgeBaseID.Apply(s.knowledgeBaseID)
	f.GuardrailID.Apply(s.guardrailID)
	f.Tools.Apply(s.tools)
	f.ToolApprovals.Apply(s.toolApprovals)
	f.Evaluators.Apply(s.evaluators)
	f.FetchHosts.Apply(s.fetchHosts)
	f.ModelID.Apply(s.modelID)
	f.Runtime.Apply(s.runtime)
}

// checkNames refuses what neither an agent nor a template may be called and be said to be.
func checkNames(name string, description *string) error {
	if err := text.Check("name", name, 1, 200); err != nil {
		return err
	}
	return text.CheckOptional("description", description, 4<<10)
}

func (s settings) check() error {
	if err := text.CheckOptional("systemPrompt", *s.systemPrompt, 64<<10); err != nil {
		return err
	}
	if err := text.CheckOptional("knowledgeBaseId", *s.knowledgeBaseID, 200); err != nil {
		return err
	}
	if *s.modelID != nil {
		if err := text.Check("modelId", **s.modelID, 1, 200); err != nil {
			return err
		}
	}
	if *s.runtime != nil && !agentcore.IsSelector(**s.runtime) {
		return fault.Invalid("runtime must be 1 to 63 of the characters a to z, 0 to 9, - and _, and begin with a letter or digit")
	}
	if *s.skillPackIDs != nil {
		if len(**s.skillPackIDs) > 50 {
			return fault.Invalid("skillPackIds holds more than 50 entries")
		}
		for _, id := range **s.skillPackIDs {
			if err := text.Check("skillPackIds", id, 1, 200); err != nil {
				return err
			}
		}
	}
	if err := checkGrants("tools", *s.tools); err != nil {
		return err
	}
	if err := checkGrants("toolApprovals", *s.toolApprovals); err != nil {
		return err
	}
	if err := checkFetchHosts(*s.fetchHosts); err != nil {
		return err
	}
	if *s.evaluators != nil {
		checked, err := evaluator.CheckAgents(**s.evaluators)
		if err != nil {
			return err
		}
		*s.evaluators = &checked
	}
	return nil
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

// holdGuardrail checks that the guardrail which is named exists, and keeps it from being deleted until tx ends.
func (s settings) holdGuardrail(ctx context.Context, tx pgx.Tx) error {
	if *s.guardrailID == nil {
		return nil
	}
	if !ident.Valid(**s.guardrailID) {
		return fault.Missing("guardrail")
	}
	id, err := postgres.One(ctx, tx, "guardrail", pgx.RowTo[string], `select id::text from guardrails where id = $1 for key share`, **s.guardrailID)
	*s.guardrailID = &id
	return err
}
