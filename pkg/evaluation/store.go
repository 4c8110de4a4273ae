package evaluation

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

const columns = `id, name, agent_id, evaluators, concurrency, pass_threshold, case_count, version, created_at, updated_at`

func scan(row pgx.CollectableRow) (Evaluation, error) {
	var e Evaluation
	err := row.Scan(&e.ID, &e.Name, &e.AgentID, &e.Evaluators, &e.Concurrency, &e.PassThreshold, &e.CaseCount, &e.Version, &e.CreatedAt, &e.UpdatedAt)
	return e, err
}

// Cursor is the sort key of the list of evaluations.
type Cursor struct{ Name, ID string }

// Cursor is e's place in the list.
func (e Evaluation) Cursor() Cursor { return Cursor{e.Name, e.ID} }

// List is up to limit evaluations by name, after the cursor.
func List(ctx context.Context, q postgres.Querier, after *Cursor, limit int) ([]Evaluation, error) {
	var name, id *string
	if after != nil {
		name, id = &after.Name, &after.ID
	}
	return postgres.All(ctx, q, scan, `select `+columns+` from evaluations where $1::text is null or (name, id) > ($1, $2::uuid) order by name, id limit $3`, name, id, limit)
}

// Get is one evaluation.
func Get(ctx context.Context, q postgres.Querier, id string) (Evaluation, error) {
	return one(ctx, q, id, ``)
}

// lock is Get, and nobody else changes the evaluation or starts a run of it until tx ends.
func lock(ctx context.Context, tx pgx.Tx, id string) (Evaluation, error) {
	return one(ctx, tx, id, ` for no key update`)
}

func one(ctx context.Context, q postgres.Querier, id, locking string) (Evaluation, error) {
	if !ident.Valid(id) {
		return Evaluation{}, fault.Missing("evaluation")
	}
	return postgres.One(ctx, q, "evaluation", scan, `select `+columns+` from evaluations where id = $1`+locking, id)
}

// CaseCursor is the sort key of an evaluation's cases.
type CaseCursor struct{ Number int }

// Cursor is c's place in the list.
func (c Case) Cursor() CaseCursor { return CaseCursor{c.Number} }

// Cases are up to limit cases of each evaluation after the cursor, in their order, in one query, by the evaluation's id.
func Cases(ctx context.Context, q postgres.Querier, evaluations []string, after *CaseCursor, limit int) (map[string][]Case, error) {
	start := 0
	if after != nil {
		start = after.Number
	}
	rows, err := q.Query(ctx, `select c.evaluation_id, c.number, c.input, c.expected, c.metadata::text from unnest($1::uuid[]) as e (id) cross join lateral (
		select * from evaluation_cases c where c.evaluation_id = e.id and c.number > $2 order by c.number limit $3) c`, evaluations, start, limit)
	if err != nil {
		return nil, err
	}
	cases := make(map[string][]Case, len(evaluations))
	var of string
	var c Case
	_, err = pgx.ForEachRow(rows, []any{&of, &c.Number, &c.Input, &c.Expected, &c.Metadata}, func() error {
		cases[of] = append(cases[of], c)
		c = Case{}
		return nil
	})
	return cases, err
}

// Create makes an evaluation.
func Create(ctx context.Context, tx pgx.Tx, tenantID string, f Fields) (Evaluation, error) {
	e := Evaluation{ID: ident.New(), Concurrency: DefaultConcurrency, PassThreshold: DefaultPassThreshold, Version: 1, CreatedAt: ident.Now()}
	e.UpdatedAt = e.CreatedAt
	if !f.Evaluators.Set || !f.Cases.Set {
		return e, fault.Invalid("evaluators and cases are required")
	}
	if err := f.apply(&e); err != nil {
		return e, err
	}
	cases := slices.Clone(*f.Cases.Value)
	if err := e.checkCases(cases); err != nil {
		return e, err
	}
	if err := checkAgent(ctx, tx, e.AgentID); err != nil {
		return e, err
	}
	e.CaseCount = len(cases)
	_, err := tx.Exec(ctx, `insert into evaluations (tenant_id, `+columns+`) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		tenantID, e.ID, e.Name, e.AgentID, e.Evaluators, e.Concurrency, e.PassThreshold, e.CaseCount, e.Version, e.CreatedAt, e.UpdatedAt)
	if err != nil {
		return e, err
	}
	return e, insertCases(ctx, tx, tenantID, e.ID, cases)
}

// Update changes the given fields. Cases are given all or not at all. Runs keep what they began with.
func Update(ctx context.Context, tx pgx.Tx, tenantID, id string, f Fields) (Evaluation, error) {
	e, err := lock(ctx, tx, id)
	if err != nil {
		return e, err
	}
	if err := f.apply(&e); err != nil {
		return e, err
	}
	if f.AgentID.Set {
		if err := checkAgent(ctx, tx, e.AgentID); err != nil {
			return e, err
		}
	}
	var cases []Case
	if f.Cases.Set {
		cases = slices.Clone(*f.Cases.Value)
	} else if f.Evaluators.Set { // they may compare with what a case does not say
		stored, err := Cases(ctx, tx, []string{id}, nil, MaxCases)
		if err != nil {
			return e, err
		}
		cases = stored[e.ID]
	}
	if cases != nil || f.Cases.Set {
		if err := e.checkCases(cases); err != nil {
			return e, err
		}
	}
	if f.Cases.Set {
		e.CaseCount = len(cases)
		if _, err := tx.Exec(ctx, `delete from evaluation_cases where evaluation_id = $1`, id); err != nil {
			return e, err
		}
		if err := insertCases(ctx, tx, tenantID, e.ID, cases); err != nil {
			return e, err
		}
	}
	e.Version++
	e.UpdatedAt = ident.Now()
	_, err = tx.Exec(ctx, `update evaluations set name = $2, agent_id = $3, evaluators = $4, concurrency = $5, pass_threshold = $6, case_count = $7, version = $8,
		updated_at = $9 where id = $1`, e.ID, e.Name, e.AgentID, e.Evaluators, e.Concurrency, e.PassThreshold, e.CaseCount, e.Version, e.UpdatedAt)
	return e, err
}

// Delete takes an evaluation away, with its runs; the threads of their cases stay. A run that is going on stops that.
func Delete(ctx context.Context, tx pgx.Tx, id string) (Evaluation, error) {
	e, err := one(ctx, tx, id, ` for update`)
	if err != nil {
		return e, err
	}
	var running bool
	if err := tx.QueryRow(ctx, `select exists (select from evaluation_runs where evaluation_id = $1 and status = 'running')`, id).Scan(&running); err != nil {
		return e, err
	}
	if running {
		return e, fault.Invalid("a run of the evaluation is going on: cancel it first")
	}
	var b pgx.Batch
	b.Queue(`delete from evaluation_results where run_id in (select id from evaluation_runs where evaluation_id = $1)`, id)
	b.Queue(`delete from evaluation_runs where evaluation_id = $1`, id)
	b.Queue(`delete from evaluation_cases where evaluation_id = $1`, id)
	b.Queue(`delete from evaluations where id = $1`, id)
	return e, tx.SendBatch(ctx, &b).Close()
}

func insertCases(ctx context.Context, tx pgx.Tx, tenantID, id string, cases []Case) error {
	n := len(cases)
	numbers, keys, inputs, expected, metadata := make([]int, n), make([]string, n), make([]string, n), make([]*string, n), make([]*string, n)
	for i, c := range cases {
		numbers[i], keys[i], inputs[i], expected[i], metadata[i] = c.Number, c.key, c.Input, c.Expected, c.Metadata
	}
	_, err := tx.Exec(ctx, `insert into evaluation_cases (tenant_id, evaluation_id, number, key, input, expected, metadata)
		select $1, $2, c.number, c.key, c.input, c.expected, c.metadata::json
		from unnest($3::integer[], $4::text[], $5::text[], $6::text[], $7::text[]) c (number, key, input, expected, metadata)`,
		tenantID, id, numbers, keys, inputs, expected, metadata)
	return err
}

// checkAgent refuses an agent that could never be asked.
func checkAgent(ctx context.Context, q postgres.Querier, id string) error {
	if !ident.Valid(id) {
		return fault.Missing("agent")
	}
	archived, err := postgres.One(ctx, q, "agent", pgx.RowTo[bool], `select status = 'archived' from agents where id = $1`, id)
	if err == nil && archived {
		return fault.Invalid("the agent is archived")
	}
	return err
}
