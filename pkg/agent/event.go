package agent

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit"
)

// event is an audited act on a. Who did it is whoever records it.
func (a Agent) event(t audit.Type, payload map[string]any) audit.Event {
	payload["agentId"] = a.ID
	return audit.Event{Type: t, ResourceType: "agent", ResourceID: a.ID, AgentID: a.ID, Payload: payload}
}

// Creation is the event of a's creation.
func (a Agent) Creation() audit.Event {
	return a.event(audit.AgentCreated, map[string]any{"name": a.Name, "templateId": a.TemplateID})
}

// deletion is the event of a's archiving, whichever operation did it.
func (a Agent) deletion(reason *string) audit.Event {
	payload := map[string]any{}
	if reason != nil && *reason != "" {
		payload["reason"] = *reason
	}
	return a.event(audit.AgentDeleted, payload)
}

// changes are the events of an update: what it did to the agent's life and to its skills.
func changes(ctx context.Context, tx pgx.Tx, before, after Agent) (events []audit.Event, err error) {
	if before.TemplateID != after.TemplateID || before.SkillPackIDs != after.SkillPackIDs { // pointers: the same one if the field was not given
		then, err := skills(ctx, tx, before)
		if err != nil {
			return nil, err
		}
		now, err := skills(ctx, tx, after)
		if err != nil {
			return nil, err
		}
		events = after.skillsChanged(then, now)
	}
	if before.Status != Archived && after.Status == Archived {
		events = append(events, after.deletion(nil))
	}
	return events, nil
}

// skillsChanged is the event of other skill packs than before; the same ones are none.
func (a Agent) skillsChanged(then, now []string) []audit.Event {
	added, removed := without(now, then), without(then, now)
	if len(added)+len(removed) == 0 {
		return nil
	}
	return []audit.Event{a.event(audit.AgentSkillsChanged, map[string]any{"addedSkills": added, "removedSkills": removed})}
}

// skills are the skill packs that a turn of a takes: its own, or else its template's, which stay until tx ends: a template's change records what it does
// to its agents.
func skills(ctx context.Context, tx pgx.Tx, a Agent) ([]string, error) {
	if a.SkillPackIDs != nil {
		return *a.SkillPackIDs, nil
	}
	t, err := oneTemplate(ctx, tx, a.TemplateID, ` for share`)
	return t.skills(), err
}

// without is what of these is not among others, each once, sorted.
func without(these, others []string) []string {
	left := slices.DeleteFunc(slices.Clone(these), func(s string) bool { return slices.Contains(others, s) })
	slices.Sort(left)
	if left = slices.Compact(left); left == nil {
		left = []string{}
	}
	return left
}
