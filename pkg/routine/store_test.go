package routine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/text"
	engine "github.com/agentplatform/agentplatform/pkg/workflow"
)

// passes is a definition that makes this of anything.
func passes(result string) string {
	return fmt.Sprintf(`{"StartAt":"A","States":{"A":{"Type":"Pass","Result":%q,"End":true}}}`, result)
}

func (w *world) versions(id string) (list []string) {
	w.t.Helper()
	all, err := routine.Versions(w.t.Context(), w.db.App.In(w.TenantID), []string{id}, nil, 200)
	require.NoError(w.t, err)
	for _, v := range all[id] {
		require.Equal(w.t, w.UserID, v.CreatedBy)
		list = append(list, fmt.Sprintf("%d %s", v.Version, v.Status))
	}
	return list
}

func TestVersions(t *testing.T) {
	w := newWorld(t)
	w.run()
	r, err := w.create("mine", ` { "StartAt": "A", "States": {"A": {"Type": "Pass", "Result": "one", "End": true}} } `)
	require.NoError(t, err)
	require.Equal(t, passes("one"), *r.Definition, "without white space")
	require.Equal(t, []string{"1 waiting"}, w.versions(r.ID))
	require.NoError(t, w.settler.Prepare(t.Context(), w.TenantID, r.ID, 1))
	require.Equal(t, []string{"1 ready"}, w.versions(r.ID))

	slow := w.redefine(r.ID, machine("W", `"W": {"Type": "Wait", "Seconds": 3600, "Next": "A"}, "A": {"Type": "Pass", "Result": "two", "End": true}`))
	require.Equal(t, 2, slow.CurrentVersion)
	w.sweep()
	require.Equal(t, []string{"2 ready", "1 gone"}, w.versions(r.ID))
	going := w.started(r.ID, ``)
	require.Equal(t, 2, going.Version)

	again, err := w.update(r.ID, routine.Fields{Definition: text.Patch[string]{Set: true, Value: slow.Definition}, Description: text.Patch[string]{Set: true, Value: new("Why.")}})
	require.NoError(t, err)
	require.Equal(t, 2, again.CurrentVersion, "the same definition is no new version")
	require.Equal(t, "Why.", *again.Description)

	third := w.redefine(r.ID, passes("three"))
	require.Equal(t, 3, third.CurrentVersion)
	w.sweep()
	require.Equal(t, []string{"3 ready", "2 ready", "1 gone"}, w.versions(r.ID), "a run of it goes on")
	require.Equal(t, `"three"`, *w.over(w.started(r.ID, ``)).Output)
	w.mu.Lock()
	w.ahead = 2 * time.Hour
	w.mu.Unlock()
	w.engine.Look()
	require.Equal(t, `"two"`, *w.over(going).Output, "a run goes on with what it began with")
	w.sweep()
	require.Equal(t, []string{"3 ready", "2 gone", "1 gone"}, w.versions(r.ID))

	for version, want := range map[int]string{1: passes("one"), 2: *slow.Definition, 3: passes("three")} {
		got, err := routine.Get(t.Context(), w.db.App.In(w.TenantID), r.ID, &version)
		require.NoError(t, err)
		require.Equal(t, want, *got.Definition)
		require.Equal(t, []int{version, 3}, []int{got.Version, got.CurrentVersion})
	}
	_, err = routine.Get(t.Context(), w.db.App.In(w.TenantID), r.ID, new(4))
	refused(t, err, fault.NotFound, "routine not found")
}

func TestOldVersionsGo(t *testing.T) {
	w := newWorld(t)
	r, err := w.create("mine", passes("0"))
	require.NoError(t, err)
	w.change(`update routine_versions set status = 'gone'`)
	w.change(`update routines set last_version = $1`, routine.MaxVersions)
	_, err = w.update(r.ID, routine.Fields{Definition: text.Patch[string]{Set: true, Value: new(passes("1"))}})
	require.NoError(t, err)
	require.Equal(t, []string{"101 waiting"}, w.versions(r.ID))
}

func TestWhatARoutineCannotBe(t *testing.T) {
	w := newWorld(t)
	_, err := w.create("mine", passes("x"))
	require.NoError(t, err)
	other, err := w.create("other", passes("x"))
	require.NoError(t, err)
	set := func(s string) text.Patch[string] { return text.Patch[string]{Set: true, Value: &s} }
	for says, f := range map[string]routine.Fields{
		"name must not be empty":               {Name: set(" "), Definition: set(passes("x"))},
		"name is longer than 200 bytes":        {Name: set(strings.Repeat("x", 201)), Definition: set(passes("x"))},
		"name and definition are required":     {Name: set("a")},
		"description is longer than":           {Name: set("a"), Definition: set(passes("x")), Description: set(strings.Repeat("x", 2001))},
		"definition must not be null":          {Name: set("a"), Definition: text.Patch[string]{Set: true}},
		`there is a routine of the name "mine`: {Name: set("mine"), Definition: set(passes("x"))},
		"definition: /States/A":                {Name: set("a"), Definition: set(`{"StartAt":"A","States":{"A":{"Type":"Pass"}}}`)},
	} {
		err := w.tx(func(tx pgx.Tx) error {
			_, err := routine.Create(t.Context(), tx, w.TenantID, w.UserID, f)
			return err
		})
		refused(t, err, fault.ValidationError, says)
	}
	_, err = w.update(other.ID, routine.Fields{Name: set("mine")})
	refused(t, err, fault.ValidationError, `there is a routine of the name "mine"`)
	_, err = w.update(other.ID, routine.Fields{Definition: set(`{}`)})
	refused(t, err, fault.ValidationError, "definition: ")
	_, err = w.update(ident.New(), routine.Fields{Name: set("x")})
	refused(t, err, fault.NotFound, "routine not found")
	require.Equal(t, []string{"1 waiting"}, w.versions(other.ID))
}

func TestAsManyRoutinesAsATenantMayHave(t *testing.T) {
	w := newWorld(t)
	w.change(`insert into routines (tenant_id, id, name, current_version, last_version, created_by, created_at, updated_at)
		select $1, gen_random_uuid(), n::text, 1, 1, $2, now(), now() from generate_series(1, $3) n`, w.TenantID, w.UserID, routine.MaxRoutines-1)
	var together sync.WaitGroup
	made := make(chan error, 4)
	for i := range 4 {
		together.Go(func() {
			_, err := w.create(fmt.Sprintf("mine %d", i), passes("x"))
			made <- err
		})
	}
	together.Wait()
	refusals := 0
	for range 4 {
		if err := <-made; err != nil {
			refusals++
			refused(t, err, fault.ValidationError, "there are 100 routines")
		}
	}
	require.Equal(t, 3, refusals)
	_, err := routine.List(t.Context(), w.db.App.In(w.TenantID), nil, 10)
	require.NoError(t, err)
}

func TestDelete(t *testing.T) {
	w := newWorld(t)
	w.run()
	r, err := w.create("mine", machine("A", `"A": `+task(routine.SendMail, ``, ``)))
	require.NoError(t, err)
	run := w.started(r.ID, ``)
	asked := w.call()
	w.recorded(asked)
	remove := func() (err error) {
		return w.tx(func(tx pgx.Tx) error {
			_, err = routine.Delete(t.Context(), tx, r.ID)
			return err
		})
	}
	require.NoError(t, remove())
	refused(t, remove(), fault.NotFound, "routine not found")
	_, err = routine.Get(t.Context(), w.db.App.In(w.TenantID), r.ID, nil)
	refused(t, err, fault.NotFound, "routine not found")
	_, err = w.start(routine.NewRun{RoutineID: r.ID})
	refused(t, err, fault.NotFound, "routine not found")
	_, err = w.start(routine.NewRun{Name: "mine"})
	refused(t, err, fault.NotFound, "routine not found")
	_, err = w.create("mine", passes("another of that name"))
	require.NoError(t, err)

	w.sweep()
	require.Equal(t, "ready", w.text(`select status from routine_versions where routine_id = $1`, r.ID), "its run goes on")
	require.NoError(t, w.engine.Succeed(t.Context(), asked.Token, []byte(`"done"`)))
	require.Equal(t, `"done"`, *w.over(run).Output)
	require.Equal(t, "mine", w.get(run.ID).RoutineName)
	w.sweep()
	require.Equal(t, "gone", w.text(`select status from routine_versions where routine_id = $1`, r.ID))
	_, err = w.engine.Start(t.Context(), routine.MachineName(r.ID, 1), "x", []byte(`{}`))
	require.ErrorIs(t, err, engine.ErrNoMachine)
	require.Equal(t, "1", w.text(`select count(*)::text from routines where id = $1`, r.ID), "its run can still be read")
	w.change(`update routine_runs set finished_at = finished_at - $1::interval`, routine.RunAge)
	w.sweep()
	require.Equal(t, "0 0 0 0", w.text(`select (select count(*) from routines where id = $1) || ' ' || (select count(*) from routine_versions where routine_id = $1) || ' ' ||
		(select count(*) from routine_runs where routine_id = $1) || ' ' || (select count(*) from routine_steps)`, r.ID))
	require.Equal(t, "1", w.text(`select count(*)::text from routines`), "others stay")
}

// refusing is an engine that will not have definitions, or cannot be reached.
type refusing struct {
	engine.Machines
	err error
}

func (r *refusing) Put(ctx context.Context, machine, definition string) error {
	if r.err != nil {
		return r.err
	}
	return r.Machines.Put(ctx, machine, definition)
}

func TestTheEngineRefusesAVersion(t *testing.T) {
	w := newWorld(t)
	w.run()
	machines := &refusing{Machines: w.engine}
	w.settler.Machines = machines
	no := &engine.DefinitionError{Problems: []engine.Problem{{Message: "not today", Location: "/States/A"}}}
	prepare := func(id string, version int) error { return w.settler.Prepare(t.Context(), w.TenantID, id, version) }

	r := w.made(passes("one"))
	machines.err = no
	_, err := w.update(r.ID, routine.Fields{Definition: text.Patch[string]{Set: true, Value: new(passes("two"))}})
	require.NoError(t, err)
	for range 2 {
		reason := new(routine.Refusal)
		require.ErrorAs(t, prepare(r.ID, 2), &reason)
		require.Equal(t, "definition: /States/A: not today", reason.Reason)
	}
	require.Equal(t, []string{"2 refused", "1 ready"}, w.versions(r.ID))
	machines.err = nil
	require.Equal(t, 1, w.started(r.ID, ``).Version, "the one before is the current one again")
	require.Equal(t, 3, w.redefine(r.ID, passes("three")).CurrentVersion, "a number is not used again")

	machines.err = no
	only, err := w.create("only", passes("x"))
	require.NoError(t, err)
	require.Error(t, prepare(only.ID, 1))
	_, err = routine.Get(t.Context(), w.db.App.In(w.TenantID), only.ID, nil)
	refused(t, err, fault.NotFound, "routine not found")
	w.sweep()
	require.Equal(t, "0", w.text(`select count(*)::text from routines where id = $1`, only.ID))

	// A version that nobody had prepared is refused when it is started.
	machines.err = fmt.Errorf("unreachable")
	late, err := w.create("late", passes("x"))
	require.NoError(t, err)
	require.ErrorContains(t, prepare(late.ID, 1), "unreachable")
	run, err := w.start(routine.NewRun{RoutineID: late.ID})
	require.NoError(t, err)
	w.due()
	w.sweep()
	require.Equal(t, routine.Starting, w.get(run.ID).Status, "it may be reached another time")
	never, err := w.start(routine.NewRun{RoutineID: late.ID})
	require.NoError(t, err)
	w.change(`update routine_runs set created_at = created_at - interval '25 hours' where id = $1`, never.ID)
	w.due()
	w.sweep()
	require.Equal(t, routine.NotStarted, *w.get(never.ID).Error)
	machines.err = no
	w.due()
	w.sweep()
	ended := w.get(run.ID)
	require.Equal(t, routine.DefinitionRefused, *ended.Error)
	require.Equal(t, "definition: /States/A: not today", *ended.Cause)
}

// A machine that the engine does not delete keeps no other waiting.
func TestAMachineThatStays(t *testing.T) {
	w := newWorld(t)
	stays, goes := w.made(passes("one")), w.made(passes("one"))
	w.settler.Machines = &clinging{Machines: w.engine, to: routine.MachineName(stays.ID, 1)}
	w.redefine(stays.ID, passes("two"))
	w.redefine(goes.ID, passes("two"))
	w.sweep()
	require.Equal(t, []string{"2 ready", "1 ready"}, w.versions(stays.ID))
	require.Equal(t, []string{"2 ready", "1 gone"}, w.versions(goes.ID))
}

// clinging is an engine that does not delete one machine.
type clinging struct {
	engine.Machines
	to string
}

func (c *clinging) Delete(ctx context.Context, machine string) error {
	if machine == c.to {
		return engine.ErrThrottled
	}
	return c.Machines.Delete(ctx, machine)
}

// Who was making a machine while its version was retired, takes it away again.
func TestAVersionIsRetiredWhileItsMachineIsMade(t *testing.T) {
	w := newWorld(t)
	r, err := w.create("mine", passes("x"))
	require.NoError(t, err)
	w.settler.Signal = func(point string) {
		if point == "machine put" {
			w.settler.Signal = nil
			require.NoError(t, w.tx(func(tx pgx.Tx) error {
				_, err := routine.Delete(t.Context(), tx, r.ID)
				return err
			}))
			w.sweep()
		}
	}
	require.NoError(t, w.settler.Prepare(t.Context(), w.TenantID, r.ID, 1))
	_, err = w.engine.Start(t.Context(), routine.MachineName(r.ID, 1), "x", []byte(`{}`))
	require.ErrorIs(t, err, engine.ErrNoMachine)
}

// Somebody deleted a machine in the engine: it is made again.
func TestAMachineThatIsGone(t *testing.T) {
	w := newWorld(t)
	w.run()
	r := w.made(passes("x"))
	w.settler.Runs = &forgetful{Runs: w.engine}
	run, err := w.start(routine.NewRun{RoutineID: r.ID})
	require.NoError(t, err)
	_, err = w.settler.Launch(t.Context(), w.TenantID, run.ID)
	require.ErrorIs(t, err, engine.ErrNoMachine)
	require.Equal(t, []string{"1 waiting"}, w.versions(r.ID))
	_, err = w.settler.Launch(t.Context(), w.TenantID, run.ID)
	require.NoError(t, err)
	require.Equal(t, []string{"1 ready"}, w.versions(r.ID))
	require.Equal(t, `"x"`, *w.over(w.get(run.ID)).Output)
}

// forgetful does not know the machine when it is first asked.
type forgetful struct {
	engine.Runs
	asked bool
}

func (f *forgetful) Start(ctx context.Context, machine, name string, input json.RawMessage) (string, error) {
	if !f.asked {
		f.asked = true
		return "", fmt.Errorf("run %s: %w", name, engine.ErrNoMachine)
	}
	return f.Runs.Start(ctx, machine, name, input)
}
