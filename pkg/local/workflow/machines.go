package workflow

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/workflow"
	"github.com/agentplatform/agentplatform/pkg/workflow/asl"
)

// Put implements workflow.Machines. A machine that was deleted is there still, as far as its name goes.
func (e *Engine) Put(ctx context.Context, machine, definition string) error {
	m, err := e.check(machine, definition)
	if err != nil {
		return err
	}
	var had string
	var deleted bool
	err = e.db.Unbound(ctx, func(tx pgx.Tx) error {
		had, deleted = "", false
		var id int64
		if err := tx.QueryRow(ctx, `insert into local_workflow.definitions (text, timeout) values ($1, $2) returning id`, definition, m.Timeout).Scan(&id); err != nil {
			return err
		}
		made, err := tx.Exec(ctx, `insert into local_workflow.machines (name, definition) values ($1, $2) on conflict do nothing`, machine, id)
		if err != nil || made.RowsAffected() > 0 {
			return err
		}
		if _, err := tx.Exec(ctx, `delete from local_workflow.definitions where id = $1`, id); err != nil {
			return err
		}
		err = tx.QueryRow(ctx, `select d.text, m.deleted from local_workflow.machines m left join local_workflow.definitions d on d.id = m.definition where m.name = $1`, machine).
			Scan(&had, &deleted)
		return err
	})
	switch {
	case err != nil:
		return about("machine "+machine, err)
	case deleted || had != "" && !same(had, definition):
		return about("machine "+machine, workflow.ErrMachineExists)
	}
	return nil
}

// Deploy gives a machine of the platform's own another definition: unlike a tenant's, which never change, these go with the release. Runs go on with
// the definition that they began with.
func (e *Engine) Deploy(ctx context.Context, machine, definition string) error {
	m, err := e.check(machine, definition)
	if err != nil {
		return err
	}
	return about("machine "+machine, e.db.Unbound(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `with had as (
				select m.name from local_workflow.machines m join local_workflow.definitions d on d.id = m.definition where m.name = $1 and d.text = $2 and not m.deleted),
			made as (insert into local_workflow.definitions (text, timeout) select $2, $3 where not exists (select from had) returning id)
			insert into local_workflow.machines (name, definition) select $1, id from made
			on conflict (name) do update set definition = excluded.definition, deleted = false`, machine, definition, m.Timeout)
		return err
	}))
}

// Delete implements workflow.Machines.
func (e *Engine) Delete(ctx context.Context, machine string) error {
	if err := workflow.CheckMachine(machine); err != nil {
		return err
	}
	return about("machine "+machine, e.db.Unbound(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `update local_workflow.machines set deleted = true where name = $1`, machine)
		return err
	}))
}

func (e *Engine) check(machine, definition string) (*asl.Machine, error) {
	if err := workflow.CheckMachine(machine); err != nil {
		return nil, err
	}
	if err := workflow.CheckDefinition(definition); err != nil {
		return nil, err
	}
	m, err := asl.Parse(definition, e.dialect())
	if err != nil {
		return nil, err
	}
	for s := range m.All() {
		if strings.ContainsRune(s.Name, 0) { // which the database has in no text
			return nil, &workflow.DefinitionError{Problems: []workflow.Problem{{Code: "INVALID_STATE_NAME", Message: "a state's name must not contain a NUL character", Location: s.Location}}}
		}
	}
	return m, nil
}

// same reports whether two JSON texts are the same but for white space around tokens.
func same(a, b string) bool {
	var x, y bytes.Buffer
	return a == b || json.Compact(&x, []byte(a)) == nil && json.Compact(&y, []byte(b)) == nil && x.String() == y.String()
}

// about is err with what it is about.
func about(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("workflow: %s: %w", what, err)
}

// program is a definition as it runs.
type program struct {
	start  string
	looks  bool                  // it looks into the context object
	states map[string]*asl.State // those of branches too
}

func newProgram(definition string, m *asl.Machine) *program {
	p := &program{start: m.StartAt, looks: strings.Contains(definition, "$$"), states: map[string]*asl.State{}}
	for s := range m.All() {
		p.states[s.Name] = s
	}
	return p
}

// program reads a definition that a run began with.
func (e *Engine) program(ctx context.Context, id int64) (*program, error) {
	if p, ok := e.programs.Load(id); ok {
		return p.(*program), nil
	}
	text, found := "", false
	err := e.ask(ctx, `select text from local_workflow.definitions where id = $1`, []any{id}, func(rows pgx.Rows) error {
		found = true
		return rows.Scan(&text)
	})
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("%w: the definition is not there", errUnreadable)
	}
	m, err := asl.Parse(text, asl.Dialect{}) // its resources were checked when it was put
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	p := newProgram(text, m)
	if e.parsed.Add(1) > maxPrograms {
		e.parsed.Store(1)
		e.programs.Clear()
	}
	e.programs.Store(id, p)
	return p, nil
}

// maxPrograms bounds what is kept in memory.
const maxPrograms = 1000

// ask is one question in one round trip. What is asked is a transaction of its own.
func (e *Engine) ask(ctx context.Context, sql string, args []any, row func(pgx.Rows) error) error {
	rows, err := e.db.Lookup().Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
