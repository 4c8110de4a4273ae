package bench

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// BenchmarkTaskEvent: a tracker tells that a task has moved, again as soon as who watches its thread has seen the move. The figure runs from the delivery to the
// message at the subscriber: taken in, read, written into the task's thread, published. Nobody is connected, so that no tracker is asked. The floor is the same
// rows written by bare SQL in two commits.
func BenchmarkTaskEvent(b *testing.B) {
	w := open(b)
	b.Run("event", func(b *testing.B) { taskEvents(b, w) })
	b.Run("floor", func(b *testing.B) { floorTaskEvents(b, w) })
}

func taskEvents(b *testing.B, w *world) {
	w.settle(b)
	raw, status, err := w.post("/api/webhooks", w.token, fmt.Appendf(nil, `{"name":"bench","target_type":"task","config":{"provider":"linear"},"signing_secret":%q,"rate_limit":100000}`, secret))
	must(b, err)
	var hook hook
	if err := json.Unmarshal(raw, &hook); err != nil || status != http.StatusCreated {
		b.Fatalf("%d %s", status, raw)
	}
	issue := fmt.Sprintf("issue-%d", time.Now().UnixNano())
	must(b, w.moves(hook, issue, "to the first place"))
	seen := make(chan string, 16)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	must(b, w.subscribe(ctx, []string{w.taskThread(b, hook)}, `... on NewMessageEvent { message { body } }`, func(raw json.RawMessage) {
		var e struct {
			Data struct {
				OnThreadEvent struct{ Message struct{ Body string } }
			}
		}
		if json.Unmarshal(raw, &e) == nil && e.Data.OnThreadEvent.Message.Body != "" {
			seen <- e.Data.OnThreadEvent.Message.Body
		}
	}))
	took := each(b, 1, func(_, n int) error {
		to := fmt.Sprint("place ", n)
		if err := w.moves(hook, issue, to); err != nil {
			return err
		}
		for lost := time.After(10 * time.Second); ; {
			select {
			case body := <-seen:
				if strings.HasSuffix(body, " to "+to) {
					return nil
				}
			case <-lost:
				return errors.New("nobody was told that the task has moved")
			}
		}
	})
	b.ReportMetric(percentile(took, 50), "p50-ms")
	b.ReportMetric(percentile(took, 95), "p95-ms")
}

// moves delivers that a task is in another place now, as Linear does.
func (w *world) moves(h hook, issue, to string) error {
	now := time.Now().UTC()
	body := fmt.Appendf(nil, `{"action":"update","type":"Issue","actor":{"id":"u-2","name":"Bo"},"createdAt":%q,"organizationId":"o-1","webhookTimestamp":%d,"updatedFrom":{"stateId":"s-1"},
		"data":{"id":%q,"identifier":"ENG-1","title":"Rotate the key","updatedAt":%q,"state":{"name":%q,"type":"started"}}}`,
		now.Format(time.RFC3339Nano), now.UnixMilli(), issue, now.Format(time.RFC3339Nano), to)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	raw, err := w.send(w.platform.Outputs.APIURL+"/integrations/linear/webhook?token="+h.Token, http.Header{"Content-Type": {"application/json"},
		"Linear-Signature": {hex.EncodeToString(mac.Sum(nil))}, "Linear-Delivery": {to}}, body)
	if err == nil && !strings.Contains(string(raw), `"ok"`) {
		err = fmt.Errorf("%s", raw)
	}
	return err
}

// taskThread waits until the task has a thread.
func (w *world) taskThread(b *testing.B, h hook) string {
	for began := time.Now(); time.Since(began) < time.Minute; <-time.After(20 * time.Millisecond) {
		var log struct {
			ListDeliveries struct{ Items []struct{ ThreadID *string } }
		}
		must(b, w.query(request(`query ($id: ID!) { listDeliveries(filter: {webhookId: $id}) { items { threadId } } }`, map[string]any{"id": h.ID}), &log))
		if len(log.ListDeliveries.Items) > 0 && log.ListDeliveries.Items[0].ThreadID != nil {
			return *log.ListDeliveries.Items[0].ThreadID
		}
	}
	b.Fatal("the task has no thread")
	return ""
}

// floorTaskEvents writes key, event and log in one commit; task, thread, message and the event's end in another.
func floorTaskEvents(b *testing.B, w *world) {
	pool, err := w.superuser()
	must(b, err)
	defer pool.Close()
	ctx := context.Background()
	_, err = pool.Exec(ctx, `create table if not exists floor_task_events (id bigserial primary key, kind text, body text, state text)`)
	must(b, err)
	var thread int64
	must(b, pool.QueryRow(ctx, `insert into floor_task_events (kind) values ('thread') returning id`).Scan(&thread))
	took := each(b, 1, func(int, int) error {
		var event int64
		var first, second pgx.Batch
		first.Queue(`insert into floor_task_events (kind, body) values ('key', 'a key'), ('log', 'a row')`)
		first.Queue(`insert into floor_task_events (kind, body, state) values ('event', $1, 'queued') returning id`, strings.Repeat("body ", 100)).
			QueryRow(func(row pgx.Row) error { return row.Scan(&event) })
		if err := pool.SendBatch(ctx, &first).Close(); err != nil {
			return err
		}
		second.Queue(`update floor_task_events set body = $2 where id = $1`, thread, strings.Repeat("envelope ", 50))
		second.Queue(`insert into floor_task_events (kind, body) values ('task', 'ENG-1'), ('message', 'Bo moved ENG-1'), ('notice', 'Bo moved ENG-1')`)
		second.Queue(`update floor_task_events set state = 'done' where id = $1`, event)
		return pool.SendBatch(ctx, &second).Close()
	})
	b.ReportMetric(percentile(took, 50), "p50-ms")
	b.ReportMetric(percentile(took, 95), "p95-ms")
}
