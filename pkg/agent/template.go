package agent

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/evaluator"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// Template is what agents share; an agent overrides it field by field.
type Template struct {
	ID              string            `json:"id"`
	Name            string            `json:"name"`
	Description     *string           `json:"description"`
	ModelID         string            `json:"modelId"`
	SystemPrompt    *string           `json:"systemPrompt"`
	Runtime         string            `json:"runtime"`
	Tools           []string          `json:"tools"`
	ToolApprovals   []string          `json:"toolApprovals"`
	GuardrailID     *string           `json:"guardrailId"`
	SkillPackIDs    *[]string         `json:"skillPackIds"`
	KnowledgeBaseID *string           `json:"knowledgeBaseId"`
	Evaluators      *[]evaluator.Spec `json:"evaluators"` // of its agents' turns
	FetchHosts      []string          `json:"fetchHosts"` // that http_fetch may ask
	CreatedAt       ident.Time        `json:"createdAt"`
	UpdatedAt       ident.Time        `json:"updatedAt"`
}

const templateColumns = `id, name, description, model_id, system_prompt, runtime, tools, approvals, guardrail_id, skill_pack_ids, knowledge_base_id, created_at, updated_at, evaluators, fetch_hosts`

func scanTemplate(row pgx.CollectableRow) (Template, error) {
	var t Template
	err := row.Scan(&t.ID, &t.Name, &t.Description, &t.ModelID, &t.SystemPrompt, &t.Runtime, &t.Tools, &t.ToolApprovals, &t.GuardrailID, &t.SkillPackIDs,
		&t.KnowledgeBaseID, &t.CreatedAt, &t.UpdatedAt, &t.Evaluators, &t.FetchHosts)
	return t, err
}

// Templates are the templates with these ids, by id; those that do not exist are left out.
func Templates(ctx context.Context, q postgres.Querier, ids []string) (map[string]Template, error) {
	return postgres.Index(ctx, q, scanTemplate, func(t Template) string { return t.ID }, `select `+templateColumns+` from agent_templates where id = any($1::uuid[])`, ids)
}

// Default is what a tenant begins with: its default template and an active agent of it.
type Default struct {
	TemplateID, ID string // empty: new ones
	ModelID        string // the template's. Required
	Name           string // of the agent
	SystemPrompt   string // of the agent
}

// CreateDefault adds the tenant's default template and an active agent.
func CreateDefault(ctx context.Context, tx pgx.Tx, tenantID string, d Default) (Agent, error) {
	a := Agent{ID: d.ID, Name: d.Name, Status: Active, SystemPrompt: &d.SystemPrompt, TemplateID: d.TemplateID, CreatedAt: ident.Now()}
	a.UpdatedAt = a.CreatedAt
	if a.ID == "" {
		a.ID = ident.New()
	}
	if a.TemplateID == "" {
		a.TemplateID = ident.New()
	}
	if err := a.check(); err != nil {
		return Agent{}, err
	}
	_, err := tx.Exec(ctx, `insert into agent_templates (tenant_id, id, name, model_id, tools, is_default) values ($1, $2, 'Default', $3, '{ask_user,read_thread}', true)`,
		tenantID, a.TemplateID, d.ModelID)
	if err != nil {
		return Agent{}, err
	}
	return a, insert(ctx, tx, tenantID, a)
}

// templateFor is the id of the chosen template, which must exist, or of the tenant's default one.
func templateFor(ctx context.Context, tx pgx.Tx, chosen string) (string, error) {
	var id string
	var err error
	switch {
	case chosen == "":
		err = tx.QueryRow(ctx, `select id from agent_templates where is_default`).Scan(&id)
	case ident.Valid(chosen):
		err = tx.QueryRow(ctx, `select id from agent_templates where id = $1`, chosen).Scan(&id)
	default:
		err = pgx.ErrNoRows
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return "", fault.Missing("template")
	}
	return id, err
}
