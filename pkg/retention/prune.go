package retention

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// What is the same for all tenants.
const (
	TokenKept     = 7 * 24 * time.Hour  // what a call with a clientToken was answered
	ExecutionKept = 90 * 24 * time.Hour // an execution of a workflow: as long as the engine knows of it
	textGrace     = 48 * time.Hour      // that a prompt's text outlives the steps of the last turn that was given it: see 00012_retention.sql
)

// The bounds of a run and of its transactions.
const (
	batchRows     = 1000
	batchTurns    = 250
	batchPayloads = 100             // of up to 1 MiB
	runTime       = 4 * time.Minute // then no new transaction begins: what is left is the next run's
	stopBefore    = 15 * time.Second
)

// Pruned is what a run did.
type Pruned struct {
	Turns, Steps, Payloads, Texts, Tokens, Executions, Runs int
}

// Pruner deletes what is too old, of all tenants.
type Pruner struct {
	DB     *postgres.DB
	Now    func() time.Time   // nil: time.Now
	Signal func(point string) // tests: called at every point where a crash is tried; nil: none
}

// kind deletes a batch of one kind of the bound tenant's old rows, and returns how many; 0: there are no more.
type kind struct {
	name  string
	batch func(ctx context.Context, tx pgx.Tx, at time.Time) (rows int, err error)
	count func(p *Pruned, rows int)
}

// kinds are in order: a text may go once the turns that were given it are pruned.
func (p *Pruner) kinds() []kind {
	var steps int // of the batch, which may be run again
	return []kind{
		{"turns", func(ctx context.Context, tx pgx.Tx, at time.Time) (turns int, err error) {
			turns, steps, err = pruneTurns(ctx, tx, at, p.signal)
			return turns, err
		}, func(p *Pruned, n int) { p.Turns, p.Steps = p.Turns+n, p.Steps+steps }},
		{"payloads", prunePayloads, func(p *Pruned, n int) { p.Payloads += n }},
		{"texts", pruneTexts, func(p *Pruned, n int) { p.Texts += n }},
		{"tokens", pruneTokens, func(p *Pruned, n int) { p.Tokens += n }},
		{"executions", pruneExecutions, func(p *Pruned, n int) { p.Executions += n }},
		{"runs", pruneRun, func(p *Pruned, n int) { p.Runs += n }},
	}
}

// Run prunes until nothing is left or its time is over. Tenants take turns, a transaction each, so that none waits for the whole of another.
func (p *Pruner) Run(ctx context.Context) (total Pruned, problems error) {
	now := time.Now
	if p.Now != nil {
		now = p.Now
	}
	at, end := now(), time.Now().Add(runTime)
	if deadline, ok := ctx.Deadline(); ok && deadline.Add(-stopBefore).Before(end) {
		end = deadline.Add(-stopBefore)
	}
	tenants, err := postgres.All(ctx, p.DB.Lookup(), pgx.RowTo[string], `select tenant_id::text from lookup_prunable_tenants($1, $2, $3, $4)`, at, TokenKept, ExecutionKept, textGrace)
	if err != nil {
		return total, err
	}
	kinds := p.kinds()
	reached := make([]int, len(tenants)) // the kind that each tenant is at
	for left := len(tenants); left > 0; {
		for i, tenantID := range tenants {
			if reached[i] == len(kinds) {
				continue
			}
			if ctx.Err() != nil || !time.Now().Before(end) {
				return total, errors.Join(problems, ctx.Err())
			}
			k := kinds[reached[i]]
			n := 0
			err := p.DB.InTenantRelaxed(ctx, tenantID, func(tx pgx.Tx) (err error) {
				n, err = k.batch(ctx, tx, at)
				return err
			})
			switch {
			case err != nil: // other tenants must not wait for it, and its own later kinds neither know nor need what is left
				problems = errors.Join(problems, err)
				reached[i] = len(kinds)
			case n == 0:
				reached[i]++
			default:
				k.count(&total, n)
				p.signal(k.name)
			}
			if reached[i] == len(kinds) {
				left--
			}
		}
	}
	return total, problems
}

func (p *Pruner) signal(point string) {
	if p.Signal != nil {
		p.Signal(point)
	}
}
