package step

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/guardrail/store"
	"github.com/agentplatform/agentplatform/pkg/tool"
)

// user is an agent that uses a tool outside a turn.
type user struct {
	tool.Use
	approvals []string     // of what it is granted, what a person approves
	refusal   *fault.Error // why it may use none; nil: it may
	offer     tool.Offer   // nil: no servers
}

// close closes the sessions with tool servers.
func (u user) close() {
	if u.offer != nil {
		u.offer.Close()
	}
}

const grants = `select coalesce(a.tools, tp.tools) from agents a join agent_templates tp on tp.tenant_id = a.tenant_id and tp.id = a.template_id where a.id = $1`

// agent is what an agent may use, as a turn of it would find it now.
func (c *Caller) agent(ctx context.Context, tenantID, agentID string) (u user, err error) {
	var b pgx.Batch
	var status agent.Status
	var rules store.Loaded
	b.Queue(`select a.status, coalesce(a.tools, tp.tools), coalesce(a.approvals, tp.approvals) from agents a
		join agent_templates tp on tp.tenant_id = a.tenant_id and tp.id = a.template_id where a.id = $1`, agentID).QueryRow(func(row pgx.Row) error {
		return row.Scan(&status, &u.Grants, &u.approvals)
	})
	store.QueueOf(&b, agentID, &rules)
	if c.Servers != nil {
		u.offer = c.Servers.Queue(&b, tenantID, grants, agentID)
	}
	if err := c.DB.Once(ctx, tenantID, &b); err != nil {
		return u, err
	}
	u.Tools, u.Signal = c.Tools, c.Signal
	if u.offer != nil {
		u.Tools = c.Tools.With(u.offer.Tools())
	}
	if err := status.CheckTurns(); err != nil {
		u.refusal = fault.From(err)
	}
	g, broken := rules.Ready()
	u.PassInput, u.PassOutput = c.pass(g, broken, guardrail.ToolInput), c.pass(g, broken, guardrail.ToolOutput)
	return u, nil
}

// pass checks by the agent's guardrail, as package turn does in a turn. What cannot be checked does not go on.
func (c *Caller) pass(g *guardrail.Guardrail, broken error, stage guardrail.Stage) func(context.Context, json.RawMessage) (json.RawMessage, string) {
	return func(ctx context.Context, value json.RawMessage) (json.RawMessage, string) {
		switch {
		case broken != nil:
			return nil, uncheckable(broken)
		case g == nil || !g.Covers(stage):
			return value, ""
		}
		d, masked, err := c.Guard.JSON(ctx, *g, stage, value)
		switch {
		case err != nil:
			return nil, uncheckable(err)
		case d.Action == guardrail.Block:
			return nil, "a guardrail has blocked it: " + d.Reason
		}
		return masked, ""
	}
}

// uncheckable is what people may read of why a check could not be made.
func uncheckable(err error) string {
	if e := (*guardrail.Error)(nil); errors.As(err, &e) {
		return e.Message
	}
	return fault.From(err).Message
}
