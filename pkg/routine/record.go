package routine

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// record is what the platform did for an attempt of a task.
type record struct {
	id, verb                              string
	agentID, threadID, turnID, childRunID *string
	approval                              *Approval

	state   string
	entered ident.Time
	attempt int
}

// Approval is what a person was asked, and said.
type Approval struct {
	Prompt    string   `json:"prompt"`
	Details   *string  `json:"details"`   // JSON
	Approvers []string `json:"approvers"` // users who may decide besides owners and admins
	Decision  *string  `json:"decision"`  // APPROVED or DENIED; nil: none yet
	DecidedBy *string  `json:"decidedBy"` // a user
	Comment   *string  `json:"comment"`
}

func recordsOf(ctx context.Context, q postgres.Querier, runID string) ([]record, error) {
	return postgres.All(ctx, q, func(row pgx.CollectableRow) (r record, err error) {
		var prefix, prompt *string
		var number *int64
		var a Approval
		err = row.Scan(&r.id, &r.state, &r.entered, &r.attempt, &r.verb, &r.agentID, &r.turnID, &prefix, &number, &r.childRunID, &prompt, &a.Details, &a.Approvers, &a.Decision,
			&a.DecidedBy, &a.Comment)
		if prefix != nil && number != nil {
			r.threadID = new(ident.Thread{Prefix: *prefix, Number: *number}.String())
		}
		if prompt != nil {
			a.Prompt = *prompt
			if a.Approvers == nil {
				a.Approvers = []string{}
			}
			r.approval = &a
		}
		return r, err
	}, `select s.id, s.state, s.entered_at, s.attempt, s.verb, s.agent_id, s.turn_id, h.prefix, h.number, s.child_run_id, s.prompt, s.details, s.approvers::text[], s.decision,
			s.decided_by, s.comment
		from routine_steps s left join thread_turns t on t.tenant_id = s.tenant_id and t.id = s.turn_id left join threads h on h.tenant_id = t.tenant_id and h.uuid = t.thread_uuid
		where s.run_id = $1 order by s.id`, runID)
}

// join gives each step its record. A state is known by its name and the millisecond in which it was entered; states of that name that were entered in the
// same one, by items of a Map, take the records in their order.
func join(steps []Step, records []record) {
	type place struct {
		state   string
		entered int64
	}
	type attempt struct {
		place
		number int
	}
	seen := map[attempt]int{}           // records, by attempt
	found := map[place]map[int]record{} // of the place's first, second, … state: the last attempt
	for _, r := range records {
		p := place{r.state, r.entered.UnixMilli()}
		nth := seen[attempt{p, r.attempt}]
		seen[attempt{p, r.attempt}]++
		if found[p] == nil {
			found[p] = map[int]record{}
		}
		if last, ok := found[p][nth]; !ok || last.attempt <= r.attempt {
			found[p][nth] = r
		}
	}
	entered := map[place]int{}
	for i := range steps {
		p := place{steps[i].State, steps[i].StartedAt.UnixMilli()}
		if r, ok := found[p][entered[p]]; ok {
			s := &steps[i]
			s.ID, s.Verb, s.AgentID, s.ThreadID, s.TurnID, s.ChildRunID, s.Approval = &r.id, new(Verb(r.verb)), r.agentID, r.threadID, r.turnID, r.childRunID, r.approval
		}
		entered[p]++
	}
}
