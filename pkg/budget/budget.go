// Package budget holds what a tenant, a space and an agent may spend in a month, what one turn may use, and what was used.
//
// A budget caps money (a month, UTC) and tokens (a turn). Where several concern a turn, each of them holds. What holds:
//
//   - A turn starts only when what it may cost at the worst (Limits.Worst) fits into what every budget has left, and that is set aside in the
//     transaction that writes the turn, behind a lock of the budgets: turns that start together cannot pass a cap together.
//   - A turn makes another model call only while that call is set aside too. So a cap is passed by nothing but calls that were under way when
//     it was lowered, or that used more than a call can by the platform's own limits.
//   - What is set aside is free when the turn ends, however it ends: a trigger of the turn's record does both (schema/sql/00006_budgets.sql).
//   - What was spent is what the records of ended turns say, and what unfinished turns have used so far: totals, never differences, so that
//     nothing is counted twice by a turn that is taken up again. A turn belongs to the day and the month in which it ends.
//   - Without a budget no turn takes a lock here.
package budget

import (
	"fmt"
	"strings"
	"time"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// Scope is whose spending a budget caps.
type Scope string

const (
	Tenant Scope = "TENANT"
	Space  Scope = "SPACE"
	Agent  Scope = "AGENT"
)

func (s Scope) stored() string { return strings.ToLower(string(s)) }

func fromStored(s string) Scope { return Scope(strings.ToUpper(s)) }

// Budget is a budget with the state of the current month. Amounts are US dollars with six fractional digits; nil without a monthly cap.
type Budget struct {
	Scope         Scope      `json:"scope"`
	ScopeID       string     `json:"scopeId"`
	Name          *string    `json:"name"` // of the tenant, space or agent; nil when there is none any more
	MonthlyUSD    *string    `json:"monthlyUsd"`
	TokensPerTurn *int64     `json:"tokensPerTurn"`
	Month         string     `json:"month"` // its first day
	SpentUSD      string     `json:"spentUsd"`
	ReservedUSD   string     `json:"reservedUsd"`
	RemainingUSD  *string    `json:"remainingUsd"`
	Percent       *float64   `json:"percent"` // of the cap that is spent
	Warnings      []Warning  `json:"warnings"`
	CreatedAt     ident.Time `json:"createdAt"`
	UpdatedAt     ident.Time `json:"updatedAt"`
}

// Warning says that a part of a cap was spent.
type Warning struct {
	Scope      Scope      `json:"scope"`
	ScopeID    string     `json:"scopeId"`
	Month      string     `json:"month"` // its first day
	Percent    int        `json:"percent"`
	MonthlyUSD string     `json:"monthlyUsd"` // the cap of then
	SpentUSD   string     `json:"spentUsd"`
	CrossedAt  ident.Time `json:"crossedAt"`
}

// month is the first day of the month, UTC, in which at lies.
func month(at time.Time) time.Time {
	year, m, _ := at.UTC().Date()
	return time.Date(year, m, 1, 0, 0, 0, 0, time.UTC)
}

// maxMicros is the largest cap: a billion dollars.
const maxMicros = 1_000_000_000 * 1e6

// parseUSD reads an amount exactly, never by way of a float: up to six decimals, not negative.
func parseUSD(s string) (micros int64, err error) {
	whole, decimals, point := strings.Cut(s, ".")
	if len(whole) == 0 || len(whole) > 10 || len(decimals) > 6 || point && decimals == "" {
		return 0, errUSD
	}
	for _, c := range whole + decimals + strings.Repeat("0", 6-len(decimals)) {
		if c < '0' || c > '9' {
			return 0, errUSD
		}
		micros = micros*10 + int64(c-'0')
	}
	if micros > maxMicros {
		return 0, errUSD
	}
	return micros, nil
}

var errUSD = fault.Invalid("monthlyUsd must be a decimal number of US dollars, from 0 to 1000000000, with at most six decimals")

// usd is an amount as the API spells it.
func usd(micros int64) string {
	sign := ""
	if micros < 0 {
		sign, micros = "-", -micros
	}
	return fmt.Sprintf("%s%d.%06d", sign, micros/1e6, micros%1e6)
}

// brief is an amount for people: cents, and more decimals only where there are some.
func brief(micros int64) string {
	s := strings.TrimRight(usd(micros), "0")
	point := strings.IndexByte(s, '.')
	return s + strings.Repeat("0", max(0, 2-(len(s)-point-1))) + " USD"
}
