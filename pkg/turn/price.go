package turn

import (
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/budget"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/schema"
)

// book is what turns are reserved and settled by: these prices, and the limits of a turn.
func book(p model.Prices) budget.Book {
	return budget.Book{Prices: p, Limits: budget.Limits{Calls: maxModelCalls, InputTokens: historyTokens, OutputTokens: maxTokens}}
}

// prices are the platform's, read when they are first needed: without a budget they are not, where no turn runs.
var prices = sync.OnceValue(func() model.Prices {
	p, err := model.ParsePrices(schema.Prices)
	if err != nil {
		panic(err) // embedded: a test would have seen it
	}
	return p
})

// Price is what reserving a turn needs to know, read along with its agent and space; see budget.Terms.
type Price struct {
	ModelID string
	Terms   budget.Terms
}

// reserve queues a new turn's reservation, where a budget counts money: last of what its transaction locks.
func reserve(b *pgx.Batch, t budget.Turn, p Price) error {
	if !p.Terms.Capped {
		return nil
	}
	t.ModelID = p.ModelID
	return book(prices()).Reserve(b, t, p.Terms, ident.Now().Time)
}
