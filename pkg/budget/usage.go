package budget

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// Group is what usage is told apart by.
type Group string

const (
	ByAgent Group = "AGENT"
	BySpace Group = "SPACE"
	ByModel Group = "MODEL"
	ByDay   Group = "DAY"
)

type group struct {
	name         Group
	column, read string
}

// groups are the columns of the groups, in the order of a row.
var groups = []group{{ByDay, "day", "day::text"}, {ByAgent, "agent_id", "agent_id::text"}, {BySpace, "space_id", "space_id::text"}, {ByModel, "model", "nullif(model, '')"}}

// The bounds of one question.
const (
	maxDays = 400
	maxRows = 5000
)

// Question is what is asked about usage.
type Question struct {
	From    string  `json:"from"`    // the first day, UTC: YYYY-MM-DD
	To      string  `json:"to"`      // the last day
	GroupBy []Group `json:"groupBy"` // none: one row
	Filter  Filter  `json:"filter"`
}

// Filter takes the usage of one agent, space and model; nil is all.
type Filter struct {
	AgentID *string `json:"agentId"`
	SpaceID *string `json:"spaceId"`
	Model   *string `json:"model"`
}

// Usage is the answer: the groups that used anything, by day and then the dearest first, and the warnings of budgets within the days.
type Usage struct {
	Items    []Row     `json:"items"`
	Total    Row       `json:"total"`
	Warnings []Warning `json:"warnings"`
}

// Row is what the turns of a group used. What it is not grouped by is nil; so is the model of turns that ended before they had one.
type Row struct {
	Day              *string `json:"day"` // UTC, in which the turns ended
	AgentID          *string `json:"agentId"`
	SpaceID          *string `json:"spaceId"`
	Model            *string `json:"model"`
	Turns            int64   `json:"turns"`
	UnpricedTurns    int64   `json:"unpricedTurns"` // of these, without a known price: not in the cost
	InputTokens      int64   `json:"inputTokens"`   // those of the cache too
	OutputTokens     int64   `json:"outputTokens"`
	CacheReadTokens  int64   `json:"cacheReadTokens"`
	CacheWriteTokens int64   `json:"cacheWriteTokens"`
	CostUSD          string  `json:"costUsd"`

	micros int64
}

func (r *Row) add(o Row) {
	r.Turns += o.Turns
	r.UnpricedTurns += o.UnpricedTurns
	r.InputTokens += o.InputTokens
	r.OutputTokens += o.OutputTokens
	r.CacheReadTokens += o.CacheReadTokens
	r.CacheWriteTokens += o.CacheWriteTokens
	r.micros += o.micros
	r.CostUSD = usd(r.micros)
}

// Ask is what turns used that ended within the days: days that are added up, and what is not added up yet.
func Ask(ctx context.Context, q postgres.Querier, question Question) (Usage, error) {
	from, to, err := question.check()
	if err != nil {
		return Usage{}, err
	}
	u := Usage{Total: Row{CostUSD: usd(0)}}
	f := question.Filter
	u.Items, err = postgres.All(ctx, q, scanRow, question.sql(), from, to, f.AgentID, f.SpaceID, f.Model, maxRows+1)
	if err != nil {
		return Usage{}, err
	}
	if len(u.Items) > maxRows {
		return Usage{}, fault.Invalid("the answer has more than %d rows; ask for fewer days, fewer groups, or one agent, space or model", maxRows)
	}
	for _, r := range u.Items {
		u.Total.add(r)
	}
	u.Warnings, err = postgres.All(ctx, q, scanWarning, `select `+warningJSON+` from budget_warnings w
		where w.month >= date_trunc('month', $1::date::timestamp) and w.month <= $2 and w.crossed_at >= $1::date::timestamp at time zone 'UTC'
			and w.crossed_at < ($2::date + 1)::timestamp at time zone 'UTC'
		order by w.crossed_at desc, w.scope_id, w.percent desc limit $3`, from, to, maxRows)
	return u, err
}

func (q Question) check() (from, to time.Time, err error) {
	if from, err = day("from", q.From); err != nil {
		return from, to, err
	}
	if to, err = day("to", q.To); err != nil {
		return from, to, err
	}
	switch days := int(to.Sub(from)/(24*time.Hour)) + 1; {
	case days < 1:
		return from, to, fault.Invalid("to is before from")
	case days > maxDays:
		return from, to, fault.Invalid("from and to span more than %d days", maxDays)
	}
	for i, g := range q.GroupBy {
		if !slices.ContainsFunc(groups, func(known group) bool { return known.name == g }) {
			return from, to, fault.Invalid("groupBy takes AGENT, SPACE, MODEL and DAY")
		}
		if slices.Contains(q.GroupBy[:i], g) {
			return from, to, fault.Invalid("groupBy names %s twice", g)
		}
	}
	for field, id := range map[string]*string{"agentId": q.Filter.AgentID, "spaceId": q.Filter.SpaceID} {
		if id != nil && !ident.Valid(*id) {
			return from, to, fault.Invalid("filter.%s is not an id", field)
		}
	}
	return from, to, text.CheckOptional("filter.model", q.Filter.Model, 2048)
}

// day reads an AWSDate without an offset, which is UTC, or with Z.
func day(field, s string) (time.Time, error) {
	t, err := time.Parse(time.DateOnly, strings.TrimSuffix(s, "Z"))
	if err != nil {
		return t, fault.Invalid("%s must be a day, YYYY-MM-DD, in UTC", field)
	}
	return t, nil
}

// sql is the question as one statement over days that are added up and rows that are not.
func (q Question) sql() string {
	read, by := make([]string, len(groups)), []string{}
	for i, g := range groups {
		read[i] = "null"
		if slices.Contains(q.GroupBy, g.name) {
			read[i] = g.read
			by = append(by, g.column)
		}
	}
	const columns = `day, agent_id, space_id, model, turns, unpriced_turns, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_micros`
	const where = ` where day between $1 and $2 and ($3::uuid is null or agent_id = $3) and ($4::uuid is null or space_id = $4) and ($5::text is null or model = $5)`
	sql := fmt.Sprintf(`select %s, sum(turns)::bigint, sum(unpriced_turns)::bigint, sum(input_tokens)::bigint, sum(output_tokens)::bigint, sum(cache_read_tokens)::bigint,
			sum(cache_write_tokens)::bigint, sum(cost_micros)::bigint
		from (select %s from usage_days%s union all select %s from usage_unmetered%s) u`, strings.Join(read, ", "), columns, where, columns, where)
	if len(by) > 0 {
		sql += ` group by ` + strings.Join(by, ", ")
	}
	sql += ` having sum(turns) <> 0 or sum(input_tokens) <> 0 or sum(output_tokens) <> 0 order by `
	if slices.Contains(q.GroupBy, ByDay) {
		sql += `day, `
	}
	sql += `sum(cost_micros) desc`
	for _, column := range by {
		sql += ", " + column
	}
	return sql + ` limit $6`
}

func scanRow(row pgx.CollectableRow) (r Row, err error) {
	err = row.Scan(&r.Day, &r.AgentID, &r.SpaceID, &r.Model, &r.Turns, &r.UnpricedTurns, &r.InputTokens, &r.OutputTokens, &r.CacheReadTokens, &r.CacheWriteTokens, &r.micros)
	r.CostUSD = usd(r.micros)
	return r, err
}
