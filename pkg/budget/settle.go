package budget

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/model"
)

// Verdict says, once its batch was sent, whether a turn may make another model call.
type Verdict struct {
	modelID string
	used    int
	reason  string
	scope   string
	cap     int64
}

// Settle queues what the turn has used so far, all in all, before it makes another model call: part of the transaction that records the last one.
// Settling the same again, or less, changes nothing. The verdict is the batch's: read it when that is sent.
//
// The end of a turn is not settled here: its record is (see the package).
func (k Book) Settle(b *pgx.Batch, turnID, modelID string, used model.Usage, at time.Time) *Verdict {
	v := &Verdict{modelID: modelID, used: used.Total()}
	var total *int64
	next, known := k.Limits.Call(k.Prices, modelID, at)
	if micros, priced := k.Prices.Cost(modelID, used, at); known && priced {
		total = &micros
	}
	b.Queue(`select reason, scope, cap from settle_turn($1, $2, $3, $4, $5)`, turnID, total, next, v.used, month(at)).Query(func(rows pgx.Rows) error {
		v.reason = "" // the batch may be run again
		_, err := pgx.ForEachRow(rows, []any{&v.reason, &v.scope, &v.cap}, func() error { return nil })
		return err
	})
	return v
}

// Err is why the turn must end, a BudgetExceeded for its record; nil: it may go on.
func (v *Verdict) Err() *fault.Error {
	switch v.reason {
	case "money":
		return fault.New(fault.BudgetExceeded, "%s monthly budget of %s does not cover another model call", owner(v.scope), brief(v.cap))
	case "price":
		return fault.New(fault.BudgetExceeded, "the price of the model %s is not known, and %s monthly budget counts money", v.modelID, owner(v.scope))
	case "tokens":
		return fault.New(fault.BudgetExceeded, "the turn has used %d tokens; %s budget allows %d", v.used, owner(v.scope), v.cap)
	}
	return nil
}
