package store

import (
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/guardrail"
)

// Loaded is the guardrail of a turn's agent.
type Loaded struct {
	*guardrail.Guardrail // nil: the agent has none
	err                  error
}

// Ready is the guardrail, nil if the agent has none. An error means that it has one which cannot be used: the turn must not go on.
func (l Loaded) Ready() (*guardrail.Guardrail, error) { return l.Guardrail, l.err }

// Queue asks, in a turn's batch, for the guardrail of its agent: its own, or else its template's. l is set when the batch has run.
func Queue(b *pgx.Batch, turnID string, l *Loaded) {
	l.queue(b, `thread_turns t join agents a on a.tenant_id = t.tenant_id and a.id = t.agent_id`, `t.id`, turnID)
}

// QueueOf asks, in a batch, for the guardrail of an agent: its own, or else its template's. l is set when the batch has run.
func QueueOf(b *pgx.Batch, agentID string, l *Loaded) { l.queue(b, `agents a`, `a.id`, agentID) }

func (l *Loaded) queue(b *pgx.Batch, from, key, id string) {
	b.Queue(`select coalesce(a.guardrail_id::text, tp.guardrail_id), `+columns+`
		from `+from+`
			join agent_templates tp on tp.tenant_id = a.tenant_id and tp.id = a.template_id
			left join guardrails g on g.tenant_id = a.tenant_id and g.id::text = coalesce(a.guardrail_id::text, tp.guardrail_id)
		where `+key+` = $1 and coalesce(a.guardrail_id::text, tp.guardrail_id) is not null`, id).Query(func(rows pgx.Rows) error {
		*l = Loaded{} // the batch may be run again
		var named string
		var id, name *string
		var kind *guardrail.Kind
		var g guardrail.Guardrail
		var rules *[]guardrail.Rule
		_, err := pgx.ForEachRow(rows, []any{&named, &id, &name, &g.Description, &kind, &rules, &g.Bedrock, &g.BlockedInputMessage, &g.BlockedOutputMessage, nil, nil}, func() error {
			if id == nil {
				l.err = guardrail.Fail("The agent's guardrail "+named+" does not exist.", nil)
				return nil
			}
			g.ID, g.Name, g.Kind, g.Rules = *id, *name, *kind, *rules
			l.Guardrail, l.err = &g, g.Compile()
			if l.err != nil {
				l.err = guardrail.Fail("The rules of the guardrail "+g.Name+" cannot be read.", l.err)
			}
			return nil
		})
		return err
	})
}
