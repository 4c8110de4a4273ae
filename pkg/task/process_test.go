package task_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/task"
)

func TestAnEventIsInItsThread(t *testing.T) {
	w := newWorld(t)
	w.user(adaID)
	o := w.happen(fixture(t, "issue-assigned"))
	require.Equal(t, []string{"TASK-1 TASK open ENG-123: Rotate the signing key"},
		column[string](w, `select concat_ws(' ', prefix || '-' || number, channel, status, title) from threads where agent_id = $1`, w.AgentID))
	require.JSONEq(t, `{"external": {"provider": "linear", "account": "dc844923-f9a4-40a3-825c-dea7747e57d6", "taskId": "`+issueID+`", "key": "ENG-123",
		"url": "https://linear.app/acme/issue/ENG-123/rotate-the-signing-key", "verified": true, "latestEnvelope": {"provider": "linear", "taskId": "`+issueID+`", "key": "ENG-123",
		"title": "Rotate the signing key", "url": "https://linear.app/acme/issue/ENG-123/rotate-the-signing-key", "status": "Todo", "statusType": "open",
		"assignee": {"id": "`+adaID+`", "name": "Ada Byron"}, "due": "2026-03-09", "updatedAt": "2026-03-02T10:09:00Z", "source": "live"}}}`,
		query[string](w, `select (metadata #- '{external,latestEnvelope,fetchedAt}')::text from threads`))
	fetched, err := time.Parse(time.RFC3339, w.envelope("fetchedAt"))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), fetched, time.Minute)
	require.Equal(t, []string{adaID}, w.linear.questions(), "it is asked for as whose it is")

	require.Equal(t, []string{"1 system Bo Chen assigned ENG-123 to Ada Byron"}, column[string](w, `select concat_ws(' ', position, role, body) from messages where turn_id is null and user_id is null`))
	var said struct {
		Kind, EventID string
		Event         map[string]any
	}
	require.NoError(t, json.Unmarshal([]byte(query[string](w, `select metadata::text from messages`)), &said))
	require.Equal(t, "external_task_event", said.Kind)
	require.Equal(t, map[string]any{"kind": "assignment", "at": "2026-03-02T10:00:00Z", "actor": map[string]any{"id": boID, "name": "Bo Chen"}, "verified": true, "provider": "linear", "taskId": issueID}, said.Event)
	require.Equal(t, []string{"1 0 1"}, column[string](w, `select concat_ws(' ', message_count, turn_count, (select count(*) from thread_events where undelivered is false and thread_uuid = uuid) - 1) from threads`))
	require.Zero(t, query[int](w, `select count(*) from thread_turns`), "no turn is started")

	require.Len(t, w.events.all, 2)
	message, thread := w.events.all[0].(publish.NewMessage), w.events.all[1].(publish.ThreadUpdate)
	require.Equal(t, []any{"TASK-1", 1, "system", 2}, []any{message.ThreadID, message.Sequence, message.Message.Role, thread.Sequence})
	require.Equal(t, *message.Message.Metadata, query[string](w, `select metadata::text from messages`))
	require.JSONEq(t, query[string](w, `select metadata::text from threads`), *thread.Thread.Metadata)

	require.Equal(t, []string{"done 1 t t"}, column[string](w, `select concat_ws(' ', status, attempts, body is null, finished_at is not null) from task_events where id = $1`, o.EventID))
	require.Equal(t, []string{"ok Issue.update TASK-1 1"}, column[string](w, `select concat_ws(' ', d.outcome, d.event, t.prefix || '-' || t.number, h.invocation_count)
		from deliveries d join threads t on t.uuid = d.thread_uuid join webhooks h on h.id = d.webhook_id where d.id = $1`, o.EventID))
	require.NoError(t, w.processor.Process(t.Context(), o))
	require.Len(t, w.messages(), 1, "once")
	w.whole()
}

// whole holds that no event left a part of itself.
func (w *world) whole() {
	w.t.Helper()
	require.Zero(w.t, query[int](w, `select count(*) from threads t where message_count <> (select count(*) from messages m where m.thread_uuid = t.uuid)
		or message_count <> (select coalesce(max(position), 0) from messages m where m.thread_uuid = t.uuid)`), "messages are numbered without gaps")
	require.Zero(w.t, query[int](w, `select count(*) from threads t where token_count <> (select sum(token_count) from messages m where m.thread_uuid = t.uuid)`))
	require.Zero(w.t, query[int](w, `select count(*) from threads t where channel = 'TASK' and not exists (select from external_tasks x where x.thread_uuid = t.uuid)`))
	require.Equal(w.t, query[int](w, `select count(*) from messages where role = 'system'`), query[int](w, `select count(*) from delivery_keys where key like 'e:%'`))
}

// A newer event shows; an older one adds its message, and the task stays as it is. Without the provider as with it.
func TestReordered(t *testing.T) {
	w := newWorld(t)
	status := fixture(t, "issue-state-changed") // 10:03, Done
	due := fixture(t, "issue-due-set")          // 10:04, Todo, 2026-03-06
	assigned := fixture(t, "issue-assigned")    // 10:00, Todo, no date
	w.happen(at(due, "2026-03-02T10:04:00.000Z"))
	require.Equal(t, []string{"synthetic", "Todo", "2026-03-06"}, []string{w.envelope("source"), w.envelope("status"), w.envelope("due")})
	w.happen(status)
	w.happen(assigned)
	require.Equal(t, []string{"Todo", "2026-03-06"}, []string{w.envelope("status"), w.envelope("due")}, "older ones do not put it back")
	require.Equal(t, []string{"Bo Chen set the due date of ENG-123 to 2026-03-06", "Bo Chen moved ENG-123 to Done", "Bo Chen assigned ENG-123 to Ada Byron"}, w.messages())
	updates := 0
	for _, e := range w.events.all {
		if _, is := e.(publish.ThreadUpdate); is {
			updates++
		}
	}
	require.Equal(t, 1, updates, "and nobody is told that it has changed")

	w.user(adaID)
	w.linear.now(fields{"state": fields{"name": "In Review", "type": "started"}, "updatedAt": "2026-03-02T11:00:00.000Z"})
	w.happen(at(fixture(t, "issue-label-changed"), "2026-03-02T10:07:00.000Z"))
	require.Equal(t, []string{"live", "In Review", "started"}, []string{w.envelope("source"), w.envelope("status"), w.envelope("statusType")})
	w.linear.answers(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusServiceUnavailable) })
	w.happen(at(fixture(t, "issue-state-changed", fields{"priority": 3}), "2026-03-02T10:59:00.000Z"))
	require.Equal(t, []string{"live", "In Review"}, []string{w.envelope("source"), w.envelope("status")}, "what the provider said later is newer")
	w.happen(at(fixture(t, "issue-state-changed", fields{"priority": 4}), "2026-03-02T11:01:00.000Z"))
	require.Equal(t, []string{"synthetic", "Done"}, []string{w.envelope("source"), w.envelope("status")})
	w.linear.answers(nil) // a replica of the provider's that is behind
	w.happen(at(fixture(t, "issue-due-changed", fields{"priority": 5}), "2026-03-02T10:30:00.000Z"))
	require.Equal(t, []string{"synthetic", "Done"}, []string{w.envelope("source"), w.envelope("status")})
	w.whole()
}

// A synthetic envelope says what it does not know as it was known.
func TestASyntheticEnvelopeKeepsWhatItDoesNotSay(t *testing.T) {
	w := newWorld(t)
	w.happen(fixture(t, "issue-due-changed"))
	comment := fixture(t, "comment-create")
	delete(comment["data"].(fields)["issue"].(fields), "identifier")
	w.happen(comment)
	require.Equal(t, []string{"ENG-123", "Todo", "2026-03-09", "synthetic"}, []string{w.envelope("key"), w.envelope("status"), w.envelope("due"), w.envelope("source")})
	require.Equal(t, "Bo Chen commented on ENG-123: Can you take this before Friday?", w.messages()[1])
	w.happen(at(fixture(t, "issue-archived"), "2026-03-02T12:00:00.000Z"))
	require.Equal(t, []string{"true", "Todo"}, []string{w.envelope("gone"), w.envelope("status")})
}

// A clock that is ahead, or a stranger's, does not keep later events out.
func TestATimeAhead(t *testing.T) {
	w := newWorld(t)
	w.happen(at(fixture(t, "issue-due-set"), "2199-01-01T00:00:00.000Z"))
	require.Less(t, query[time.Time](w, `select envelope_at from external_tasks`), time.Now().Add(2*time.Minute))
	w.exec(`update external_tasks set envelope_at = envelope_at - interval '1 hour'`)
	w.happen(at(fixture(t, "issue-state-changed"), time.Now().UTC().Format(time.RFC3339Nano)))
	require.Equal(t, "Done", w.envelope("status"))
}

// What people have written on the thread stays.
func TestATitleAndMetadataOfPeople(t *testing.T) {
	w := newWorld(t)
	w.happen(fixture(t, "issue-assigned"))
	w.happen(at(fixture(t, "issue-label-changed", fields{"title": "Rotate both keys"}), "2026-03-02T10:10:00.000Z"))
	require.Equal(t, "ENG-123: Rotate both keys", query[string](w, `select title from threads`))
	w.exec(`update threads set title = 'The keys', metadata = metadata || '{"mine": [1]}'`)
	w.happen(at(fixture(t, "issue-label-changed", fields{"title": "Rotate all keys"}), "2026-03-02T10:11:00.000Z"))
	require.Equal(t, []string{"The keys [1] Rotate all keys"},
		column[string](w, `select concat_ws(' ', title, metadata #>> '{mine}', metadata #>> '{external,latestEnvelope,title}') from threads`))
	w.exec(`update threads set metadata = null`)
	w.happen(at(fixture(t, "issue-due-set", fields{"title": "Old"}), "2026-03-02T10:00:00.000Z"))
	require.Equal(t, "Old", w.envelope("title"), "what was taken out comes back")
}

// Many events of one new task at once: one thread, and all messages.
func TestOneThreadATask(t *testing.T) {
	w := newWorld(t)
	w.user(adaID)
	const n = 20
	var orders []task.Order
	for i := range n {
		orders = append(orders, w.deliver(fixture(t, "issue-state-changed", fields{"priority": i})).Order)
	}
	_, other := w.process()
	begin := make(chan struct{})
	var all sync.WaitGroup
	errs := make([]error, 2*n)
	for i, o := range slices.Concat(orders, orders) { // each twice
		all.Go(func() {
			<-begin
			by := w.processor
			if i%2 == 0 {
				by = other
			}
			errs[i] = by.Process(t.Context(), o)
		})
	}
	close(begin)
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Equal(t, 1, query[int](w, `select count(*) from threads`))
	require.Len(t, w.messages(), n)
	require.Equal(t, n, query[int](w, `select count(*) from task_events where status = 'done' and attempts = 1`))
	require.Len(t, w.pushes(), n)
	w.whole()
}

// What Asana repeats in another delivery is not told again; what is new in it is.
func TestAnEventInTwoDeliveries(t *testing.T) {
	w := newWorld(t)
	hook := w.create("asana", "")
	one := fields{"user": fields{"gid": "7"}, "created_at": "2026-04-21T10:00:00.000Z", "action": "changed", "resource": fields{"gid": "1", "resource_type": "task"}, "change": fields{"field": "name"}}
	two := fields{"user": fields{"gid": "7"}, "created_at": "2026-04-21T10:00:01.000Z", "action": "changed", "resource": fields{"gid": "1", "resource_type": "task"}, "change": fields{"field": "tags"}}
	for _, events := range [][]fields{{one}, {one, two}, {two, one}} {
		got, err := w.send(w.receiver, "asana", hook.Token, encode(t, fields{"events": events}))
		require.NoError(t, err)
		require.NoError(t, w.processor.Process(t.Context(), got.Order))
	}
	require.Equal(t, []string{"Somebody changed the title of the task", "Somebody changed the tags of the task"}, w.messages())
	require.Equal(t, "Task 1", query[string](w, `select title from threads`))
	w.whole()
}

func TestTheAgentOfATask(t *testing.T) {
	w := newWorld(t)
	other := query[string](w, `insert into agents (tenant_id, id, name, status, template_id) values ($1, gen_random_uuid(), 'Bob', 'active', $2) returning id`, w.TenantID, w.TemplateID)
	w.exec(`update webhooks set agent_id = $2 where id = $1`, w.hook.ID, other)
	w.happen(fixture(t, "issue-assigned"))
	require.Equal(t, other, query[string](w, `select agent_id from threads`))
	w.exec(`update agents set status = $2 where id = $1`, other, agent.Archived)
	w.happen(at(fixture(t, "issue-due-set"), "2026-03-02T10:04:00.000Z"))
	require.Len(t, w.messages(), 2, "a thread that there is goes on")
	w.happen(fixture(t, "subissue-create-2023"))
	require.Equal(t, []string{"Somebody created WEB-46"}, w.messages()[2:])
	require.Equal(t, w.AgentID, query[string](w, `select agent_id from threads where number = 2`), "of the default space: the webhook's takes no threads any more")
	got := w.deliver(fixture(t, "issue-create-2023"))
	w.exec(`delete from webhooks where id = $1`, w.hook.ID) // its events are taken in
	require.NoError(t, w.processor.Process(t.Context(), got.Order))
	require.Len(t, w.messages(), 4)
}

// An event that cannot be put anywhere stands in no other's way: the others of its delivery are in their threads, and it is in the log, whole, for an operator.
func TestOneOfADeliveryFails(t *testing.T) {
	w := newWorld(t)
	hook := w.create("asana", "")
	change := func(task string) fields {
		return fields{"created_at": "2026-04-21T10:00:00.000Z", "action": "changed", "resource": fields{"gid": task, "resource_type": "task"}, "change": fields{"field": "name"}}
	}
	send := func(filler int, tasks ...string) task.Order {
		var events []fields
		for _, id := range tasks {
			events = append(events, change(id))
		}
		got, err := w.send(w.receiver, "asana", hook.Token, encode(t, fields{"events": events, "of": strings.Repeat("x", filler)}))
		require.NoError(t, err)
		return got.Order
	}
	require.NoError(t, w.processor.Process(t.Context(), send(0, "2")))
	w.exec(`update agents set status = 'archived'`)
	o := send(7000, "1", "2", "3")                           // not signed: the log has no body of it
	w.exec(`delete from delivery_keys where key like 'e:%'`) // so that task 2 is told of once more
	require.NoError(t, w.processor.Process(t.Context(), o))
	require.Len(t, w.messages(), 2)
	require.Equal(t, []string{"failed the agent is archived t t"}, column[string](w, `select concat_ws(' ', status, error, body is not null, finished_at is not null) from task_events where id = $1`, o.EventID))
	require.Equal(t, []string{"error the agent is archived"}, column[string](w, `select outcome || ' ' || error from deliveries where id = $1`, o.EventID))
	w.exec(`update agents set status = 'active'`)
	again, err := integration.Replay(t.Context(), w.db.App, o.EventID)
	require.NoError(t, err)
	require.NoError(t, w.processor.Process(t.Context(), task.Order{TenantID: w.TenantID, EventID: again.TaskEvent}))
	require.Len(t, w.messages(), 4)
	require.Equal(t, 3, query[int](w, `select count(*) from threads`))
	require.Equal(t, 1, query[int](w, `select count(*) from task_events where body is not null`))

	w.exec(`update agents set status = 'archived'`)
	large := send(9000, "4")
	require.NoError(t, w.processor.Process(t.Context(), large))
	require.Equal(t, []string{"failed t"}, column[string](w, `select concat_ws(' ', status, body is null) from task_events where id = $1`, large.EventID))
	_, err = integration.Replay(t.Context(), w.db.App, large.EventID)
	require.EqualError(t, err, "the body of the delivery was not kept")
}

// A sweep whose events cannot be claimed ends: the next one tries again.
func TestASweepThatGetsNothingDone(t *testing.T) {
	w := newWorld(t)
	hook := w.create("asana", "")
	w.exec(`insert into task_events (tenant_id, id, webhook_id, provider, verified, body, next_at)
		select $1, gen_random_uuid(), $2, 'asana', false, '{}', now() - interval '1 hour' + n * interval '1 second' from generate_series(1, 200) n`, w.TenantID, hook.ID)
	w.exec(`alter table task_events add constraint broken check (lease_id is null)`)
	require.Error(t, w.processor.Process(t.Context(), task.Order{}))
	require.Equal(t, 200, query[int](w, `select count(*) from task_events where attempts = 0`))
}

// Of a delivery in which one event may not fail again that one is tried again, and the others are not told twice.
func TestOneOfADeliveryIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	hook := w.create("asana", "")
	var events []fields
	for _, id := range []string{"1", "2"} {
		events = append(events, fields{"created_at": "2026-04-21T10:00:00.000Z", "action": "changed", "resource": fields{"gid": id, "resource_type": "task"}, "change": fields{"field": "name"}})
	}
	got, err := w.send(w.receiver, "asana", hook.Token, encode(t, fields{"events": events}))
	require.NoError(t, err)
	w.exec(`alter table external_tasks add constraint broken check (task_id <> '1')`)
	require.Error(t, w.processor.Process(t.Context(), got.Order))
	require.Equal(t, []string{"2 queued"}, column[string](w, `select x.task_id || ' ' || e.status from external_tasks x, task_events e`))
	w.exec(`alter table external_tasks drop constraint broken`)
	w.exec(`update task_events set next_at = now() - interval '1 second'`)
	require.NoError(t, w.processor.Process(t.Context(), got.Order))
	require.Len(t, w.messages(), 2)
	w.whole()
}

// What an operator has taken in again adds what is not there, and nothing twice.
func TestReplay(t *testing.T) {
	w := newWorld(t)
	w.user(adaID)
	replay := func(deliveryID string) {
		t.Helper()
		again, err := integration.Replay(t.Context(), w.db.App, deliveryID)
		require.NoError(t, err)
		require.NoError(t, w.processor.Process(t.Context(), task.Order{TenantID: again.Delivery.TenantID, EventID: again.TaskEvent}))
	}
	o := w.happen(fixture(t, "issue-assigned"))
	replay(o.EventID)
	require.Len(t, w.messages(), 1)
	require.Len(t, w.pushes(), 1)

	w.exec(`update agents set status = 'archived'`)
	o = w.happen(fixture(t, "subissue-create-2023"))
	require.Equal(t, "failed", query[string](w, `select status from task_events where id = $1`, o.EventID))
	w.exec(`update agents set status = 'active'`)
	replay(o.EventID)
	require.Equal(t, []string{"Bo Chen assigned ENG-123 to Ada Byron", "Somebody created WEB-46"}, w.messages())
	require.Equal(t, []string{"true"}, column[string](w, `select metadata::jsonb #>> '{event,verified}' from messages where body like '%WEB-46'`), "it was, when it came")
	require.Equal(t, 2, query[int](w, `select count(*) from deliveries where replay_of is not null`))
	w.whole()
}

// Another tenant's event is none.
func TestAnotherTenantsOrder(t *testing.T) {
	w := newWorld(t)
	n := w.neighbour()
	got := w.deliver(fixture(t, "issue-assigned"))
	require.NoError(t, w.processor.Process(t.Context(), task.Order{TenantID: n.TenantID, EventID: got.Order.EventID}))
	require.Equal(t, 1, query[int](w, `select count(*) from task_events where status = 'queued' and attempts = 0`))
	require.Zero(t, query[int](w, `select count(*) from threads`))
	w.exec(`update task_events set next_at = now() - interval '1 second'`)
	require.NoError(t, w.processor.Process(t.Context(), task.Order{}), "the sweep knows whose it is")
	require.Equal(t, []string{w.TenantID}, column[string](w, `select tenant_id::text from threads`))
}
