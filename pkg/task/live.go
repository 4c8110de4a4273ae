package task

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/provider"
	"github.com/agentplatform/agentplatform/pkg/tracker"
)

const (
	askTime  = 25 * time.Second // for all tasks of a delivery
	oneTime  = 10 * time.Second // for one of them
	askAtAll = 3                // people as whom a task is asked for
	restTime = time.Minute      // of a connection that gets no token
)

// inquiry asks a provider for the tasks of a delivery.
type inquiry struct {
	p        *Processor
	c        claimed
	provider tracker.Provider
	each     time.Duration               // for one task
	until    time.Time                   // for all
	known    map[string]tracker.Envelope // tasks that were asked for
	away     bool                        // the provider wants to be left alone, or does not answer
}

// live is the event's task as the provider says; what the event says itself if the provider cannot be asked. With an event that is not verified nobody is:
// whoever has the webhook's address would say which task a user's token is used for.
func (q *inquiry) live(ctx context.Context, e *tracker.Event) tracker.Envelope {
	if !q.c.verified {
		return e.Envelope
	}
	if task, is := q.known[e.TaskID]; is && e.Kind != tracker.Comment { // of a comment the provider has to say more
		return task
	}
	for _, as := range q.people(ctx, e) {
		if q.away || !time.Now().Before(q.until) {
			break
		}
		if q.p.resting.rests(as.ID) {
			continue
		}
		task, err := q.ask(ctx, as, e)
		if err == nil {
			q.known[e.TaskID] = task
			return task
		}
		slog.WarnContext(ctx, "a task could not be asked for", "tenant_id", q.c.TenantID, "event_id", q.c.EventID, "provider", q.c.provider, "connection_id", as.ID, "error", err)
		q.failed(as, err)
	}
	return e.Envelope
}

// failed remembers who wants to be left alone.
func (q *inquiry) failed(as person, err error) {
	var failed *provider.Error
	switch {
	case errors.As(err, &failed):
		q.away = failed.Again() || failed.Kind == provider.Unknown
		if failed.Again() && failed.After > 0 {
			q.p.resting.rest(as.ID, failed.After)
		}
	case !internal(err): // the authorization server gives no token
		q.p.resting.rest(as.ID, restTime)
	}
}

func (q *inquiry) ask(ctx context.Context, as person, e *tracker.Event) (task tracker.Envelope, err error) {
	ctx, cancel := context.WithTimeout(ctx, min(q.each, time.Until(q.until)))
	defer cancel()
	asked := time.Now()
	err = q.p.Connections.Use(ctx, q.c.TenantID, as.ID, func(ctx context.Context, over *http.Client, at tracker.Config, access string) (err error) {
		at.Account = as.Account
		task, err = q.provider.Live(ctx, over, at, access, e)
		return err
	})
	task.FetchedAt = asked.UTC().Truncate(time.Microsecond)
	return task, err
}

// person is a connection, and the account that it is of; empty: it is not known, or there are several.
type person struct{ ID, Account string }

// people are the connections of those who have to do with the event, first of whose task it is, last of whose it was by what is known.
func (q *inquiry) people(ctx context.Context, e *tracker.Event) []person {
	found, err := postgres.All(ctx, q.p.DB.In(q.c.TenantID), pgx.RowToStructByPos[person], `with people as (
			select id, place from unnest($2::text[]) with ordinality p (id, place)
			union all select t.metadata #>> '{external,latestEnvelope,assignee,id}', 1000 from external_tasks x join threads t on t.tenant_id = x.tenant_id and t.uuid = x.thread_uuid
				where x.provider = $1 and x.account = $3 and x.task_id = $4)
		select c.id::text, coalesce(c.account, '') from people p join connections c on c.provider = $1 and c.provider_user_id = p.id
			join users u on u.tenant_id = c.tenant_id and u.id = c.user_id and u.status = 'active'
		where c.status = 'active' order by p.place, c.created_at`, q.c.provider, e.PersonIDs, e.Account, e.TaskID)
	if err != nil {
		slog.WarnContext(ctx, "the connections of a task's people could not be read", "tenant_id", q.c.TenantID, "event_id", q.c.EventID, "error", err)
	}
	var once []person
	for _, as := range found {
		if !slices.Contains(once, as) && len(once) < askAtAll {
			once = append(once, as)
		}
	}
	return once
}
