package agent

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// templateColumns are those of a template; templateChanging, the last of them, may change.
const (
	templateColumns  = `created_at, is_default, id, ` + templateChanging
	templateChanging = `name, description, updated_at, ` + settingColumns
)

func scanTemplate(row pgx.CollectableRow) (Template, error) {
	var t Template
	err := row.Scan(append([]any{&t.CreatedAt, &t.IsDefault, &t.ID, &t.Name, &t.Description, &t.UpdatedAt}, t.settings().places()...)...)
	return t, err
}

// values are what to write to templateColumns.
func (t Template) values() []any {
	return append([]any{t.CreatedAt, t.IsDefault, t.ID, t.Name, t.Description, t.UpdatedAt}, t.settings().values()...)
}

// Templates are the templates with these ids, by id; those that do not exist are left out.
func Templates(ctx context.Context, q postgres.Querier, ids []string) (map[string]Template, error) {
	return postgres.Index(ctx, q, scanTemplate, func(t Template) string { return t.ID }, `select `+templateColumns+` from agent_templates where id = any($1::uuid[])`, ids)
}

// Cursor is t's place in the list.
func (t Template) Cursor() Cursor { return Cursor{t.Name, t.ID} }

// ListTemplates is up to limit templates by name, after the cursor.
func ListTemplates(ctx context.Context, q postgres.Querier, after *Cursor, limit int) ([]Template, error) {
	var name, id *string
	if after != nil {
		name, id = &after.Name, &after.ID
	}
	return postgres.All(ctx, q, scanTemplate, `select `+templateColumns+` from agent_templates
		where $1::text is null or (name collate "C", id) > ($1, $2::uuid) order by name collate "C", id limit $3`, name, id, limit)
}

// GetTemplate is one template.
func GetTemplate(ctx context.Context, q postgres.Querier, id string) (Template, error) {
	return oneTemplate(ctx, q, id, ``)
}

func oneTemplate(ctx context.Context, q postgres.Querier, id, locking string) (Template, error) {
	if !ident.Valid(id) {
		return Template{}, fault.Missing("template")
	}
	return postgres.One(ctx, q, "template", scanTemplate, `select `+templateColumns+` from agent_templates where id = $1`+locking, id)
}

// CreateTemplate makes a template, which is not the default one.
func CreateTemplate(ctx context.Context, tx pgx.Tx, tenantID string, f TemplateFields) (Template, error) {
	t := Template{ID: ident.New(), CreatedAt: ident.Now()}
	t.UpdatedAt = t.CreatedAt
	if err := f.apply(&t); err != nil {
		return Template{}, err
	}
	if err := t.settings().holdGuardrail(ctx, tx); err != nil {
		return Template{}, err
	}
	return t, insertTemplate(ctx, tx, tenantID, t)
}

func insertTemplate(ctx context.Context, tx pgx.Tx, tenantID string, t Template) error {
	_, err := tx.Exec(ctx, `insert into agent_templates (tenant_id, `+templateColumns+`) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`,
		append([]any{tenantID}, t.values()...)...)
	return err
}

// UpdateTemplate changes the given fields; turns of its agents that begin later take it as it is then. The events are for tx to record: of each agent
// whose skill packs change with the template's.
func UpdateTemplate(ctx context.Context, tx pgx.Tx, id string, f TemplateFields) (Template, []audit.Event, error) {
	if f.SkillPackIDs.Set && ident.Valid(id) { // agents before templates, as whoever changes an agent locks them
		if _, err := lockSharers(ctx, tx, id); err != nil {
			return Template{}, nil, err
		}
	}
	t, err := oneTemplate(ctx, tx, id, ` for no key update`)
	if err != nil {
		return Template{}, nil, err
	}
	before := t
	if err := f.apply(&t); err != nil {
		return Template{}, nil, err
	}
	if f.GuardrailID.Set {
		if err := t.settings().holdGuardrail(ctx, tx); err != nil {
			return Template{}, nil, err
		}
	}
	t.UpdatedAt = ident.Now()
	_, err = tx.Exec(ctx, `update agent_templates set (`+templateChanging+`) = ($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) where id = $1`, t.values()[2:]...)
	if err != nil || !f.SkillPackIDs.Set {
		return t, nil, err
	}
	var events []audit.Event
	sharers, err := lockSharers(ctx, tx, id) // and those that began to share them meanwhile; from now on nobody does
	for _, id := range sharers {
		events = append(events, Agent{ID: id}.skillsChanged(before.skills(), t.skills())...)
	}
	return t, events, err
}

// lockSharers are the agents that take the template's skill packs and may take turns again; nobody else changes them until tx ends.
func lockSharers(ctx context.Context, tx pgx.Tx, templateID string) (ids []string, err error) {
	return postgres.All(ctx, tx, pgx.RowTo[string], `select id::text from agents where template_id = $1 and skill_pack_ids is null and status <> 'archived' order by id for no key update`, templateID)
}

func (t Template) skills() []string {
	if t.SkillPackIDs == nil {
		return nil
	}
	return *t.SkillPackIDs
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
