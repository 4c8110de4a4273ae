package budget

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/model"
)

// Book is what the price of a turn is reckoned by.
type Book struct {
	Prices model.Prices
	Limits Limits
}

// Turn is what a reservation is for.
type Turn struct{ ID, AgentID, SpaceID, ModelID string }

// Terms are what concerns a turn of the tenant's budgets. They are read along with the turn's agent and space, so that a tenant without budgets
// asks nothing more:
//
//	select …, b.capped, b.tokens_per_turn from … cross join lateral budget_terms(agent_id, space_id) b
type Terms struct {
	Capped        bool   // money is counted
	TokensPerTurn *int64 // the strictest; nil: none
}

// Reserve queues the reservation of what t may cost at the worst; nothing where no budget counts money. It comes behind the statement that
// writes the turn, and last of what the transaction locks: the budgets are locked until it ends. Where a budget does not cover the turn, the
// transaction fails, and Refusal makes the caller's error of that.
//
// A model without a price is refused: its cost would not count, and the cap would hold for nobody.
func (k Book) Reserve(b *pgx.Batch, t Turn, terms Terms, at time.Time) error {
	if !terms.Capped {
		return nil
	}
	worst, known := k.Limits.Worst(k.Prices, t.ModelID, terms.TokensPerTurn, at)
	if !known {
		return fault.New(fault.BudgetExceeded, "the price of the model %s is not known, so that no turn of it can be covered by a monthly budget", t.ModelID)
	}
	b.Queue(`select reserve_turn($1, $2, $3, $4, $5)`, t.ID, t.AgentID, t.SpaceID, worst, month(at))
	return nil
}

// Refusal is err as callers may read it, where a reservation failed.
func Refusal(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != "APL02" {
		return err
	}
	var short struct {
		Scope string
		Cap   int64
	}
	if json.Unmarshal([]byte(pg.Detail), &short) != nil {
		return err
	}
	return fault.New(fault.BudgetExceeded, "%s monthly budget of %s does not cover another turn", owner(short.Scope), brief(short.Cap))
}

// owner is whose budget it is, in a sentence.
func owner(scope string) string { return "the " + scope + "'s" }
