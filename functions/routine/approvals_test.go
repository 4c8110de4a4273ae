package routine_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/routine"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/routine/step"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// decide is what a user says.
func (w *works) decide(as pgtest.World, role tenant.Role, a step.Approval, decision string, comment any) (step.Approval, *fault.Error) {
	w.t.Helper()
	return call[step.Approval](&site{World: as, t: w.t, p: w.p}, "approve-step", functions.ApproveStep, role,
		args{"runId": a.RunID, "stepId": a.StepID, "decision": decision, "comment": comment})
}

func TestAPersonApproves(t *testing.T) {
	w := newWorks(t)
	named, other := w.user("named@acme.test"), w.user("other@acme.test")
	definition := only("wait_for_approval", fmt.Sprintf(`{"prompt.$":"States.Format('Ship {}?', $.what)","approvers":[%q],"details":{"cost":[1,"2"]}}`, named.UserID))
	run := w.run(definition, `{"what":"it"}`)
	a := w.asked(1)[0]
	require.Equal(t, []any{run.ID, run.RoutineID, run.RoutineName, "Only", "Ship it?", `{"cost":[1,"2"]}`, []string{named.UserID}, step.Asked},
		[]any{a.RunID, a.RoutineID, a.RoutineName, a.State, a.Prompt, *a.Details, a.Approvers, a.Status})

	_, refused := w.decide(other, tenant.Member, a, "APPROVED", nil)
	require.Equal(t, fault.Forbidden, refused.Type)
	_, refused = w.decide(named, tenant.Member, a, "MAYBE", nil)
	require.Equal(t, fault.ValidationError, refused.Type)
	_, refused = w.decide(named, tenant.Member, step.Approval{RunID: run.ID, StepID: ident.New()}, "APPROVED", nil)
	require.Equal(t, fault.NotFound, refused.Type)
	globex := w.p.DB.World(t, "globex")
	_, refused = w.decide(globex, tenant.Owner, a, "APPROVED", nil)
	require.Equal(t, "step that waits for approval not found", refused.Message)
	none, refused := call[page.Page[step.Approval]](&site{World: globex, t: t, p: w.p}, "list-routine-approvals", functions.ListRoutineApprovals, tenant.Owner, args{})
	require.Nil(t, refused)
	require.Empty(t, none.Items)

	approved, refused := w.decide(named, tenant.Member, a, "APPROVED", "Looks good.")
	require.Nil(t, refused)
	require.Equal(t, []any{step.Approved, named.UserID, "Looks good."}, []any{approved.Status, *approved.DecidedBy, *approved.Comment})
	out := w.output(run.ID)
	require.Equal(t, args{"decision": "approved", "by": named.UserID, "comment": "Looks good.", "at": approved.DecidedAt.String()}, out)
	require.Empty(t, w.approvals())

	again, refused := w.decide(w.World, tenant.Owner, a, "APPROVED", "Me too.")
	require.Nil(t, refused)
	require.Equal(t, approved, again, "the first decision counts")
	_, refused = w.decide(w.World, tenant.Owner, a, "DENIED", nil)
	require.Equal(t, "the step was approved already", refused.Message)
}

func TestADenialIsCaught(t *testing.T) {
	w := newWorks(t)
	for comment, cause := range map[any]string{nil: "a person said no", "Too dear.": "Too dear."} {
		run := w.run(only("wait_for_approval", `{"prompt":"Buy?"}`), `{}`)
		denied, refused := w.decide(w.World, tenant.Admin, w.asked(1)[0], "DENIED", comment)
		require.Nil(t, refused)
		require.Equal(t, step.DeniedApproval, denied.Status)
		require.Equal(t, args{"error": "Denied", "cause": cause}, w.output(run.ID))
	}
}

// People decide at the same moment: one decision counts, and the run is told that one.
func TestPeopleDecideAtOnce(t *testing.T) {
	w := newWorks(t)
	const people = 8
	users := make([]pgtest.World, people)
	for i := range users {
		users[i] = w.user(fmt.Sprintf("user%d@acme.test", i))
	}
	for range 3 {
		run := w.run(only("wait_for_approval", `{"prompt":"Ship?"}`), `{}`)
		a := w.asked(1)[0]
		statuses, by := make([]step.ApprovalStatus, people), make([]string, people)
		var ready, done sync.WaitGroup
		barrier := make(chan struct{})
		for i := range users {
			ready.Add(1)
			done.Go(func() {
				ready.Done()
				<-barrier
				decided, refused := w.decide(users[i], tenant.Admin, a, []string{"APPROVED", "DENIED"}[i%2], nil)
				if refused == nil {
					statuses[i], by[i] = decided.Status, *decided.DecidedBy
				}
			})
		}
		ready.Wait()
		close(barrier)
		done.Wait()
		decided := map[step.ApprovalStatus]bool{}
		who := map[string]bool{}
		for i, s := range statuses {
			if s != "" {
				decided[s], who[by[i]] = true, true
			}
		}
		require.Len(t, decided, 1)
		require.Len(t, who, 1)
		out := w.output(run.ID)
		if decided[step.Approved] {
			require.True(t, who[out["by"].(string)])
		} else {
			require.Equal(t, "Denied", out["error"])
		}
	}
}

// A definition says how long it waits. What nobody waits for any more, nobody decides, and it is not listed.
func TestAnApprovalTimesOut(t *testing.T) {
	w := newWorks(t)
	run := w.run(only("wait_for_approval", `{"prompt":"Quick!"}`, `"TimeoutSeconds":60`), `{}`)
	a := w.asked(1)[0]
	w.later(2 * time.Minute)
	require.Equal(t, "States.Timeout", w.output(run.ID)["error"])
	_, refused := w.decide(w.World, tenant.Owner, a, "APPROVED", nil)
	require.Equal(t, "the run does not wait for the decision any more", refused.Message)
	require.Empty(t, w.approvals())

	// In a run that goes on, the engine is asked.
	run = w.run(fmt.Sprintf(`{"StartAt":"A","States":{"A":%s,"B":%s}}`,
		task("wait_for_approval", `{"prompt":"Quick!"}`, `"TimeoutSeconds":60`, `"Catch":[{"ErrorEquals":["States.Timeout"],"Next":"B"}]`, end),
		task("wait_for_approval", `{"prompt":"Then this?"}`, end)), `{}`)
	first := w.asked(1)[0]
	w.later(2 * time.Minute)
	require.Eventually(t, func() bool {
		return value[int](w, `select count(*) from routine_steps where run_id = $1`, run.ID) == 2
	}, time.Minute, 5*time.Millisecond)
	_, refused = w.decide(w.World, tenant.Owner, first, "APPROVED", nil)
	require.Equal(t, "the run does not wait for the decision any more", refused.Message)
	require.Equal(t, "cut", value[string](w, `select status::text from routine_steps where id = $1`, first.StepID))
	second := w.asked(1)[0]
	require.Equal(t, "B", second.State)
	_, refused = w.decide(w.World, tenant.Owner, second, "APPROVED", nil)
	require.Nil(t, refused)
	require.Equal(t, "approved", w.output(run.ID)["decision"])
}

func TestPagesOfApprovals(t *testing.T) {
	w := newWorks(t)
	w.run(`{"StartAt":"M","States":{"M":{"Type":"Map","ItemsPath":"$.days","End":true,"ItemProcessor":{"StartAt":"A","States":{"A":`+
		task("wait_for_approval", `{"prompt.$":"States.Format('{}', $)"}`, end)+`}}}}}`, `{"days":[1,2,3]}`)
	all := w.asked(3)
	var seen []string
	next := args{"limit": 2}
	for range 2 {
		p, refused := call[page.Page[step.Approval]](w.site, "list-routine-approvals", functions.ListRoutineApprovals, tenant.Member, next)
		require.Nil(t, refused)
		for _, a := range p.Items {
			seen = append(seen, a.StepID)
		}
		if p.NextToken != nil {
			next = args{"limit": 2, "nextToken": *p.NextToken}
		}
	}
	require.Equal(t, []string{all[0].StepID, all[1].StepID, all[2].StepID}, seen)
}
