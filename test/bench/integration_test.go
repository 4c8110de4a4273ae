package bench

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// BenchmarkDelivery: n senders, each delivering a signed message again as soon as the one before is answered, each message of a conversation of its own, with an
// instant model. Turns run meanwhile, on the same processors; with queued they wait until the last delivery is answered, as on machines of their own. Of goes-on,
// each sender has one conversation. After that everything is counted: accepted = log = messages of people = keys, and all turns succeeded. The floor is a
// delivery's rows written by bare SQL in one commit, behind the counter that a new thread takes.
func BenchmarkDelivery(b *testing.B) {
	w := open(b)
	for _, clients := range []int{1, 8, 32} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) { deliveries(b, w, clients, false, false) })
		b.Run(fmt.Sprintf("queued/clients=%d", clients), func(b *testing.B) { deliveries(b, w, clients, true, false) })
		b.Run(fmt.Sprintf("goes-on/clients=%d", clients), func(b *testing.B) { deliveries(b, w, clients, true, true) })
		b.Run(fmt.Sprintf("floor/clients=%d", clients), func(b *testing.B) { floorDeliveries(b, w, clients) })
	}
}

// place is an integration of the world; several, for one takes at most 1,667 deliveries a second.
type place struct{ ID, URL string }

const (
	places = 4
	secret = "a secret of both sides"
)

func (w *world) openPlaces() (all [places]place, err error) {
	var agents struct {
		ListAgents struct{ Items []struct{ ID string } }
	}
	if err := w.query(request(`{ listAgents(limit: 1) { items { id } } }`, nil), &agents); err != nil {
		return all, err
	}
	for i := range all {
		var made struct{ CreateIntegration place }
		err := w.query(request(`mutation ($input: CreateIntegrationInput!) { createIntegration(input: $input) { id url } }`, map[string]any{"input": map[string]any{
			"name": fmt.Sprint("bench ", time.Now().UnixNano()), "provider": "generic", "agentId": agents.ListAgents.Items[0].ID, "rateLimit": 100_000,
			"secret": map[string]any{"signing": secret}}}), &made)
		if err != nil {
			return all, err
		}
		all[i] = made.CreateIntegration
	}
	return all, nil
}

// deliver hands over one signed message.
func (w *world) deliver(p place, id string, body []byte) error {
	at := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(at + "."))
	mac.Write(body)
	raw, status, err := w.exchange(w.platform.Outputs.APIURL+p.URL, http.Header{"Content-Type": {"application/json"}, "X-Delivery-Id": {id}, "X-Signature-Timestamp": {at},
		"X-Signature-256": {"sha256=" + hex.EncodeToString(mac.Sum(nil))}}, body)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%d %s", status, raw)
	}
	return err
}

func deliveries(b *testing.B, w *world, clients int, queued, goesOn bool) {
	w.settle(b)
	all, err := w.openPlaces()
	must(b, err)
	if queued {
		w.gate.shut()
	}
	took := each(b, clients, func(client, n int) error {
		id := fmt.Sprintf("%d-%d", client, n)
		conversation, p := id, all[(client+n)%places]
		if goesOn {
			conversation, p = strconv.Itoa(client), all[client%places]
		}
		body, err := json.Marshal(map[string]any{"conversation": conversation, "id": id, "message": "Where is my order?", "sender": map[string]string{"id": "c4", "name": "Grace"}})
		if err != nil {
			return err
		}
		return w.deliver(p, id, body)
	})
	if queued {
		w.gate.release()
	}
	b.ReportMetric(percentile(took, 50), "p50-ms")
	b.ReportMetric(percentile(took, 95), "p95-ms")
	b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "accepted/s")
	w.countDeliveries(b, all, len(took))
}

// countDeliveries waits for the turns and holds what there is against what was accepted.
func (w *world) countDeliveries(b *testing.B, all [places]place, accepted int) {
	pool, err := w.superuser()
	must(b, err)
	defer pool.Close()
	ids := []string{all[0].ID, all[1].ID, all[2].ID, all[3].ID}
	for began := time.Now(); ; <-time.After(50 * time.Millisecond) {
		var unfinished, failed int
		must(b, pool.QueryRow(context.Background(), `select count(*) filter (where t.finished_at is null), count(*) filter (where t.status not in ('queued', 'running', 'succeeded'))
			from integration_threads x join thread_turns t on t.tenant_id = x.tenant_id and t.thread_uuid = x.thread_uuid where x.integration_id = any($1::uuid[])`, ids).Scan(&unfinished, &failed))
		if failed > 0 {
			b.Fatalf("%d turns have not succeeded", failed)
		}
		if unfinished == 0 {
			break
		}
		if time.Since(began) > 5*time.Minute {
			b.Fatalf("%d turns do not end", unfinished)
		}
	}
	var logged, said, keys int
	must(b, pool.QueryRow(context.Background(), `select (select count(*) from deliveries where outcome = 'ok' and integration_id = any($1::uuid[])),
		(select count(*) from integration_threads x join messages m on m.tenant_id = x.tenant_id and m.thread_uuid = x.thread_uuid and m.role = 'user' where x.integration_id = any($1::uuid[])),
		(select count(*) from delivery_keys where source_id = any($1::uuid[]) and key like 'm:%')`, ids).Scan(&logged, &said, &keys))
	if logged != accepted || said != accepted || keys != accepted {
		b.Fatalf("accepted %d, in the log %d, messages %d, keys %d", accepted, logged, said, keys)
	}
}

func floorDeliveries(b *testing.B, w *world, clients int) {
	pool, err := w.superuser()
	must(b, err)
	defer pool.Close()
	_, err = pool.Exec(context.Background(), `create table if not exists floor_deliveries (id bigserial primary key, kind text, body text);
		create table if not exists floor_delivery_keys (key text primary key); create table if not exists floor_numbers (id int primary key, n bigint);
		insert into floor_numbers values (0, 0) on conflict do nothing; truncate floor_delivery_keys`)
	must(b, err)
	took := each(b, clients, func(client, n int) error { return floorDelivery(pool, fmt.Sprintf("%d-%d", client, n)) })
	b.ReportMetric(percentile(took, 50), "p50-ms")
	b.ReportMetric(percentile(took, 95), "p95-ms")
	b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "accepted/s")
}

// floorDelivery writes two keys, then thread, turn, message, conversation and the log's row behind the tenant's counter.
func floorDelivery(pool *pgxpool.Pool, id string) error {
	var b pgx.Batch
	b.Queue(`insert into floor_delivery_keys values ('d:' || $1), ('m:' || $1)`, id)
	b.Queue(`update floor_numbers set n = n + 1 where id = 0`)
	for _, kind := range []string{"thread", "turn", "message", "conversation", "delivery"} {
		b.Queue(`insert into floor_deliveries (kind, body) values ($1, '{"conversation":"1-1","id":"1-1","message":"Where is my order?","sender":{"id":"c4","name":"Grace"}}')`, kind)
	}
	return pool.SendBatch(context.Background(), &b).Close()
}
