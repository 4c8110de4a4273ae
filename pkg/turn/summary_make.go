package turn

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/budget"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/trace"
)

// SummarizeFunction is the function that summarises a thread, SummaryTask what it is invoked with. Whoever ends a turn of a thread that has grown long
// invokes it after the commit; a call that is lost is made up for by the thread's next turn.
const SummarizeFunction = "summarize-thread"

// SummaryTask names a thread.
type SummaryTask struct {
	TenantID   string `json:"tenantId"`
	ThreadUUID string `json:"threadUUID"`
}

// Summarizer makes the summaries of long threads: what of a conversation does not fit into the window is not lost to the model. What holds:
//
//   - A summary is made of the summary before it and of the messages behind that, as a model may see them: masked text stays masked. It is kept, and
//     nothing changes it. The same messages are summarised once, whoever tries at the same time, and paid for once.
//   - It covers messages of turns before the last that succeeded, and no others: what a turn at work or a repeated one is asked is never in a summary.
//   - No transaction is open while the model is asked. A summary that could not be made is made after a later turn; until then, and where a budget does
//     not cover it, the conversation is what fits the window.
type Summarizer struct {
	DB     *postgres.DB
	Model  model.Model
	Signal func(point string) // tests: called at every point where a crash is tried; nil: none
}

const (
	summaryMaxTokens = 1000     // of a summary that is asked for
	summaryMaxLength = 16 << 10 // bytes of one that is taken
	maxSummaries     = 20       // that one call makes, of a thread that had none for long
)

// Summarize makes the summaries that a thread is due, if any. An error means that it is to be tried again soon; what a model refuses is not one.
func (s *Summarizer) Summarize(ctx context.Context, t SummaryTask) error {
	if !ident.Valid(t.ThreadUUID) {
		return errors.New("turn: the thread's UUID is not one")
	}
	ctx = trace.In(ctx, trace.Scope{TenantID: t.TenantID})
	for range maxSummaries {
		made, err := s.one(ctx, t)
		var refused *model.Error
		if errors.As(err, &refused) && ctx.Err() == nil {
			slog.WarnContext(ctx, "the thread is summarised after a later turn: the model was asked in vain", "tenant_id", t.TenantID, "thread_uuid", t.ThreadUUID,
				"error", err, "cause", errors.Unwrap(err))
			return nil
		}
		if err != nil || !made {
			return err
		}
	}
	return nil
}

// one makes the next summary; false: none is due, or another call has made it.
func (s *Summarizer) one(ctx context.Context, t SummaryTask) (made bool, err error) {
	w, err := s.read(ctx, t)
	if err != nil || len(w.lines) == 0 {
		return false, err
	}
	if !w.covered {
		slog.InfoContext(ctx, "the thread is not summarised: a budget does not cover it", "tenant_id", t.TenantID, "thread_uuid", t.ThreadUUID)
		return false, nil
	}
	response, err := s.Model.Converse(ctx, w.request(), nil)
	if err != nil {
		return false, err
	}
	body := strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(response.Text(), ""), "\x00", ""))
	if len(body) > summaryMaxLength {
		body = strings.ToValidUTF8(body[:summaryMaxLength], "")
	}
	if body == "" {
		return false, model.Failure(model.Malformed, false, errors.New("the summary is empty"))
	}
	s.signal("summary made")
	return s.write(ctx, t, w, summary{through: w.through, body: body}, response.Usage)
}

// older is what is to be summarised.
type older struct {
	agentID, spaceID, modelID string
	lastTurn                  string // that succeeded: whose agent and space the summary is charged to
	before                    *summary
	lines                     []line // empty: none is due
	through                   int
	covered                   bool // by the budgets
	guarded                   bool // by a guardrail
}

// read finds what is to be summarised, and whether the budgets cover that.
func (s *Summarizer) read(ctx context.Context, t SummaryTask) (w older, err error) {
	err = s.DB.InTenant(ctx, t.TenantID, func(tx pgx.Tx) error {
		w = older{}
		var status agent.Status
		var lastNumber int
		var through *int
		var body *string
		err := tx.QueryRow(ctx, `select a.id, a.status, coalesce(a.model_id, tp.model_id), coalesce(a.guardrail_id::text, tp.guardrail_id) is not null, th.space_id, l.id, l.number, y.through_position, y.body
			from threads th join agents a on a.tenant_id = th.tenant_id and a.id = th.agent_id
				join agent_templates tp on tp.tenant_id = a.tenant_id and tp.id = a.template_id
				join lateral (select l.id, l.number from thread_turns l where l.thread_uuid = th.uuid and l.status = 'succeeded' order by l.number desc limit 1) l on true
				left join lateral (select y.through_position, y.body from thread_summaries y where y.thread_uuid = th.uuid order by y.through_position desc limit 1) y on true
			where th.uuid = $1`, t.ThreadUUID).Scan(&w.agentID, &status, &w.modelID, &w.guarded, &w.spaceID, &w.lastTurn, &lastNumber, &through, &body)
		if errors.Is(err, pgx.ErrNoRows) || err == nil && !status.TakesTurns() {
			return nil
		}
		if err != nil {
			return err
		}
		if through != nil {
			w.before = &summary{through: *through, body: *body}
		}
		if err := w.readLines(ctx, tx, t.ThreadUUID, lastNumber); err != nil || len(w.lines) == 0 {
			return err
		}
		limits := book(prices())
		limits.Limits.OutputTokens = summaryMaxTokens
		w.covered, err = limits.Covers(ctx, tx, w.agentID, w.spaceID, w.modelID, ident.Now().Time)
		return err
	})
	return w, err
}

// readLines reads the oldest messages that no summary covers, where a summary is due: all but what is left to the window, and no more than one summary
// is made of. The summary ends where the messages that follow are of later turns only, if there is such a place in the newer half of them: a message
// that came while a turn ran then stays with its answer.
func (w *older) readLines(ctx context.Context, q postgres.Querier, threadUUID string, lastNumber int) error {
	after := 0
	if w.before != nil {
		after = w.before.through
	}
	var whole []bool
	lines, err := postgres.All(ctx, q, func(row pgx.CollectableRow) (line, error) {
		var ends bool
		l, err := scanLineWith(row, &ends)
		whole = append(whole, ends)
		if l.unchecked && w.guarded { // from before the agent had its guardrail, and in no turn's window since
			l.body, l.payload = uncheckedBody, nil
		}
		return l, err
	}, `select `+lineColumns+`, x.turns is null or x.turns_behind is null or x.turns < x.turns_behind from (
			select position as place, token_count as own_tokens, sum(token_count) over older as tokens, sum(token_count) over newer as tokens_left, count(*) over newer as messages_left,
				max(turn_number) over older as turns, min(turn_number) over (newer rows between unbounded preceding and 1 preceding) as turns_behind,
				sum(token_count) over () as all_tokens, count(*) over () as all_messages
			from messages where thread_uuid = $2 and position > $3 and role in ('user', 'assistant', 'system')
			window older as (order by position), newer as (order by position desc)) x
			join messages m on m.thread_uuid = $2 and m.position = x.place
		where (x.all_tokens > $5 or x.all_messages > $6) and (x.tokens_left > $7 or x.messages_left > $8) and (x.turns is null or x.turns < $4)
			and (x.tokens <= $9 or x.tokens = x.own_tokens) order by x.place`,
		w.lastTurn, threadUUID, after, lastNumber, summaryDueTokens, summaryDueLength, summaryKeptTokens, summaryKeptLength, summaryInputTokens)
	if err != nil || len(lines) == 0 {
		return err
	}
	end := len(lines)
	for i := end; i > end/2; i-- {
		if whole[i-1] {
			end = i
			break
		}
	}
	w.lines, w.through = lines[:end], lines[end-1].position
	return nil
}

// write keeps the summary and charges what it cost, unless another call was faster.
func (s *Summarizer) write(ctx context.Context, t SummaryTask, w older, made summary, used model.Usage) (written bool, err error) {
	after := 0
	if w.before != nil {
		after = w.before.through
	}
	now := ident.Now()
	err = s.DB.InTenant(ctx, t.TenantID, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `insert into thread_summaries (tenant_id, thread_uuid, through_position, after_position, body, token_count, model_id, created_at)
			values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing`,
			t.TenantID, t.ThreadUUID, made.through, after, made.body, thread.EstimateTokens(made.block()), w.modelID, now)
		if written = err == nil && tag.RowsAffected() == 1; !written {
			return err
		}
		var cost *int64
		if micros, known := prices().Cost(w.modelID, used, now.Time); known {
			cost = &micros
		}
		var b pgx.Batch
		budget.Charge(&b, w.lastTurn, w.modelID, used, cost, now.Time)
		return tx.SendBatch(ctx, &b).Close()
	})
	return written, err
}

func (s *Summarizer) signal(point string) {
	if s.Signal != nil {
		s.Signal(point)
	}
}
