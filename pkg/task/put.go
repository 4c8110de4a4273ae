package task

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/tracker"
)

// external is what a thread's metadata says of its task.
type external struct {
	Provider       string           `json:"provider"`
	Account        string           `json:"account"` // "": the provider's tasks need none to be told apart
	TaskID         string           `json:"taskId"`
	Key            *string          `json:"key"`
	URL            *string          `json:"url"`
	LatestEnvelope tracker.Envelope `json:"latestEnvelope"`
	Verified       bool             `json:"verified"` // the last event was signed
}

// put writes an event into its task's thread, once, and then tells the thread's subscribers. task is the task as it is now, as far as that is known.
func (p *Processor) put(ctx context.Context, c claimed, e tracker.Event, task tracker.Envelope) (told, error) {
	for {
		w := writing{c: c, e: e, task: task, told: told{id: ident.Derive(c.source(e), e.ID), event: e}}
		err := p.DB.InTenant(ctx, c.TenantID, func(tx pgx.Tx) error { return w.write(ctx, tx) })
		if postgres.IsUnique(err, "external_tasks_pkey") {
			continue // somebody else was faster to open the thread
		}
		if err != nil {
			return told{}, err
		}
		p.signal("task event written")
		notify.Deliver(ctx, p.DB, p.Publish, c.TenantID, w.notices...)
		return w.told, nil
	}
}

// writing is one transaction.
type writing struct {
	c       claimed
	e       tracker.Event
	task    tracker.Envelope
	said    tracker.Said // of the task's envelope
	told    told
	notices []notify.Notice
}

// write locks, in this order: the event's key, the task, the thread.
func (w *writing) write(ctx context.Context, tx pgx.Tx) error {
	w.notices = nil
	tag, err := tx.Exec(ctx, `insert into delivery_keys (tenant_id, source_id, key) values ($1, $2, $3) on conflict do nothing`, w.c.TenantID, w.c.source(w.e), eventKey+w.e.ID)
	if err != nil {
		return err
	}
	at := w.e.At
	if w.task.Source == tracker.SourceLive && w.task.UpdatedAt.After(at) && w.task.UpdatedAt.Before(w.task.FetchedAt.Add(maxAhead)) {
		at = w.task.UpdatedAt
	}
	t, x, newer, err := w.open(ctx, tx, at)
	if err != nil {
		return err
	}
	before, name := x.LatestEnvelope, x.LatestEnvelope.Name()
	if w.told.task, w.told.threadID = before, t.ID; newer {
		w.told.task = w.task.Onto(before, at, w.said)
	}
	w.told.late = !newer || at.After(w.e.At)
	if tag.RowsAffected() == 0 { // it is in the thread already
		return nil
	}
	if newer {
		x.LatestEnvelope, x.Key, x.URL, x.Verified = w.told.task, w.told.task.Key.Value, w.told.task.URL.Value, w.c.verified
	}
	if now := x.LatestEnvelope.Name(); t.Title == nil || *t.Title == name { // nobody has given it another one
		t.Title = &now
	}
	if t.Metadata, err = with(t.Metadata, x); err != nil {
		return err
	}
	return w.say(ctx, tx, t, at, newer)
}

// open is the task's thread, locked, made if there is none; newer says that what is known now is not older than the envelope there.
func (w *writing) open(ctx context.Context, tx pgx.Tx, at time.Time) (t thread.Thread, x external, newer bool, err error) {
	x = external{Provider: w.c.provider, Account: w.e.Account, TaskID: w.e.TaskID, LatestEnvelope: w.task, Verified: w.c.verified}
	var public ident.Thread
	var known *time.Time
	w.said = tracker.Said{}
	err = tx.QueryRow(ctx, `select t.prefix, t.number, x.envelope_at, x.said from external_tasks x join threads t on t.tenant_id = x.tenant_id and t.uuid = x.thread_uuid
		where x.provider = $1 and x.account = $2 and x.task_id = $3 for no key update of x`, w.c.provider, w.e.Account, w.e.TaskID).Scan(&public.Prefix, &public.Number, &known, &w.said)
	if errors.Is(err, pgx.ErrNoRows) {
		if t, err = w.create(ctx, tx); err != nil {
			return t, x, false, err
		}
		_, err = tx.Exec(ctx, `insert into external_tasks (tenant_id, provider, account, task_id, thread_uuid) values ($1, $2, $3, $4, $5)`,
			w.c.TenantID, w.c.provider, w.e.Account, w.e.TaskID, t.UUID)
		return t, x, true, err
	}
	if err != nil {
		return t, x, false, err
	}
	if t, err = thread.Lock(ctx, tx, public.String()); err != nil {
		return t, x, false, err
	}
	there := read(t.Metadata)
	if there != nil {
		x = *there
	}
	return t, x, there == nil || known == nil || !at.Before(*known), nil
}

// create makes the task's thread, with the webhook's agent or, where that takes none any more, the default space's.
func (w *writing) create(ctx context.Context, tx pgx.Tx) (t thread.Thread, err error) {
	name := w.task.Name()
	n := thread.New{Channel: thread.Task, Title: &name, AgentID: w.c.agentID}
	if t, err = thread.Create(ctx, tx, w.c.TenantID, n); err != nil && n.AgentID != "" && !internal(err) {
		n.AgentID = ""
		t, err = thread.Create(ctx, tx, w.c.TenantID, n)
	}
	return t, err
}

// say adds the message and what has changed, and queues what subscribers are told.
func (w *writing) say(ctx context.Context, tx pgx.Tx, t thread.Thread, at time.Time, newer bool) error {
	metadata, err := json.Marshal(map[string]any{"kind": "external_task_event", "eventId": w.told.id, "event": map[string]any{
		"kind": w.e.Kind, "at": w.e.At, "actor": actor(w.e.Actor), "verified": w.c.verified, "provider": w.c.provider, "taskId": w.e.TaskID}})
	if err != nil {
		return err
	}
	m := publish.Message{ID: ident.New(), ThreadID: t.ID, Role: string(thread.System), Body: w.e.Line(w.told.task), Metadata: new(string(metadata)), CreatedAt: ident.Now()}
	m.TokenCount = new(thread.EstimateTokens(m.Body))
	t.UpdatedAt = m.CreatedAt
	var b pgx.Batch
	b.Queue(`insert into messages (tenant_id, id, thread_uuid, position, role, body, token_count, metadata, created_at)
		select tenant_id, $2, uuid, message_count + 1, 'system', $3, $4, $5::json, $6 from threads where uuid = $1`, t.UUID, m.ID, m.Body, m.TokenCount, m.Metadata, m.CreatedAt)
	b.Queue(`update threads set message_count = message_count + 1, token_count = token_count + $2, title = $3, metadata = $4::jsonb, updated_at = greatest(updated_at, $5) where uuid = $1
		returning metadata::text, updated_at`, t.UUID, m.TokenCount, t.Title, t.Metadata, m.CreatedAt).QueryRow(func(row pgx.Row) error { return row.Scan(&t.Metadata, &t.UpdatedAt) })
	if newer && !at.IsZero() {
		b.Queue(`update external_tasks set envelope_at = case when $3 then greatest(envelope_at, $2) else envelope_at end, said = $4 where thread_uuid = $1`,
			t.UUID, at, w.task.Complete(), w.said)
	}
	b.Queue(`update deliveries set thread_uuid = $2 where id = $1 and thread_uuid is null`, w.c.EventID, t.UUID)
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return err
	}
	events := []publish.Event{publish.NewMessage{TenantID: w.c.TenantID, ThreadID: t.ID, Message: m}}
	if newer {
		events = append(events, thread.Updated(w.c.TenantID, t))
	}
	var last pgx.Batch
	w.notices = []notify.Notice{notify.Queue(&last, w.c.TenantID, t.UUID, events...)}
	return tx.SendBatch(ctx, &last).Close()
}

// actor is who did it; nobody, if that was not said.
func actor(p tracker.Person) *tracker.Person {
	if p == (tracker.Person{}) {
		return nil
	}
	return &p
}

// read is what metadata says of a task; nil: somebody has taken it out.
func read(metadata *string) *external {
	var m struct {
		External *external `json:"external"`
	}
	if metadata == nil || json.Unmarshal([]byte(*metadata), &m) != nil {
		return nil
	}
	return m.External
}

// with is metadata with what is said of the task, and all else that people have put there.
func with(metadata *string, x external) (*string, error) {
	all := map[string]any{}
	if metadata != nil {
		if err := json.Unmarshal([]byte(*metadata), &all); err != nil {
			return nil, err
		}
	}
	all["external"] = x
	b, err := json.Marshal(all)
	return new(string(b)), err
}
