package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// BenchmarkTurn: n clients, each with threads of its own and a subscription to each, each sending its next message when the reply to the last
// one has arrived. accepted→published runs from the answer to sendMessage to the reply's NewMessageEvent at the subscriber; sent→published
// from the request. The floor is the turn's rows written by bare SQL in as many commits.
func BenchmarkTurn(b *testing.B) {
	w := open(b)
	w.settle(b)
	for _, clients := range []int{1, 8, 32} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) { turns(b, w, clients) })
		b.Run(fmt.Sprintf("floor/clients=%d", clients), func(b *testing.B) { floor(b, w, clients) })
	}
}

// turnsPerThread is how long a conversation gets: each turn gives the model all of it.
const turnsPerThread = 20

func turns(b *testing.B, w *world, clients int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	type client struct {
		threads []string
		replied chan time.Time
	}
	share := (b.N + clients - 1) / clients
	all := make([]client, clients)
	for i := range all {
		c := client{replied: make(chan time.Time, 4)}
		for range (share + turnsPerThread - 1) / turnsPerThread {
			thread, err := w.openThread()
			if err != nil {
				b.Fatal(err)
			}
			c.threads = append(c.threads, thread)
		}
		all[i] = c
		if err := w.subscribe(ctx, c.threads, `... on NewMessageEvent { message { role } }`, func(raw json.RawMessage) {
			var e struct {
				Data struct {
					OnThreadEvent struct{ Message struct{ Role string } }
				}
			}
			if json.Unmarshal(raw, &e) == nil && e.Data.OnThreadEvent.Message.Role == "assistant" {
				c.replied <- time.Now()
			}
		}); err != nil {
			b.Fatal(err)
		}
	}
	var mu sync.Mutex
	var accepted, sent []time.Duration
	var group sync.WaitGroup
	b.ResetTimer()
	for i, c := range all {
		group.Go(func() {
			for n := range min(share, b.N-i*share) {
				began := time.Now()
				body := request(`mutation ($t: ID!, $b: String!) { sendMessage(input: {threadId: $t, body: $b}) { id } }`,
					map[string]any{"t": c.threads[n/turnsPerThread], "b": fmt.Sprintf("How are you, for the %d. time?", n)})
				if err := w.query(body, nil); err != nil {
					b.Error(err)
					return
				}
				ok := time.Now()
				at := <-c.replied
				mu.Lock()
				accepted, sent = append(accepted, max(0, at.Sub(ok))), append(sent, at.Sub(began))
				mu.Unlock()
			}
		})
	}
	group.Wait()
	b.StopTimer()
	b.ReportMetric(percentile(accepted, 50), "accepted→published-p50-ms")
	b.ReportMetric(percentile(accepted, 95), "accepted→published-p95-ms")
	b.ReportMetric(percentile(sent, 50), "sent→published-p50-ms")
	b.ReportMetric(percentile(sent, 95), "sent→published-p95-ms")
	b.ReportMetric(float64(len(sent))/b.Elapsed().Seconds(), "turns/s")
}

// floor writes a turn's rows in three commits: the message with its turn, the claim, the reply with its record.
func floor(b *testing.B, w *world, clients int) {
	pool, err := w.superuser()
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	ctx := context.Background()
	if _, err := pool.Exec(ctx, `create table if not exists floor (id bigserial primary key, client int, kind text, body text, state text)`); err != nil {
		b.Fatal(err)
	}
	took := each(b, clients, func(client, _ int) error { return floorTurn(ctx, pool, client) })
	b.ReportMetric(percentile(took, 50), "p50-ms")
	b.ReportMetric(percentile(took, 95), "p95-ms")
	b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "turns/s")
}

func floorTurn(ctx context.Context, pool *pgxpool.Pool, client int) error {
	var turn int64
	var first, second, third pgx.Batch
	first.Queue(`insert into floor (client, kind, body) values ($1, 'message', 'How are you?')`, client)
	first.Queue(`insert into floor (client, kind, state) values ($1, 'turn', 'queued') returning id`, client).QueryRow(func(row pgx.Row) error { return row.Scan(&turn) })
	if err := pool.SendBatch(ctx, &first).Close(); err != nil {
		return err
	}
	second.Queue(`update floor set state = 'running' where id = $1`, turn)
	if err := pool.SendBatch(ctx, &second).Close(); err != nil {
		return err
	}
	third.Queue(`insert into floor (client, kind, body) values ($1, 'message', 'All is well, thank you.')`, client)
	third.Queue(`update floor set state = 'succeeded' where id = $1`, turn)
	return pool.SendBatch(ctx, &third).Close()
}

// BenchmarkFirstChunk: from the model's first token to the first chunk at a subscriber.
func BenchmarkFirstChunk(b *testing.B) {
	w := open(b)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	thread, err := w.openThread()
	if err != nil {
		b.Fatal(err)
	}
	chunk, replied := make(chan time.Time, 16), make(chan struct{}, 1)
	if err := w.subscribe(ctx, []string{thread}, `... on StreamChunkEvent { done chunk } ... on NewMessageEvent { message { role } }`, func(raw json.RawMessage) {
		var e struct {
			Data struct {
				OnThreadEvent struct {
					Chunk   *string
					Message struct{ Role string }
				}
			}
		}
		if json.Unmarshal(raw, &e) != nil {
			return
		}
		if e.Data.OnThreadEvent.Chunk != nil {
			chunk <- time.Now()
		}
		if e.Data.OnThreadEvent.Message.Role == "assistant" {
			replied <- struct{}{}
		}
	}); err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		question := fmt.Sprintf("first chunk %d", i)
		if err := w.query(request(`mutation ($t: ID!, $b: String!) { sendMessage(input: {threadId: $t, body: $b}) { id } }`, map[string]any{"t": thread, "b": question}), nil); err != nil {
			b.Fatal(err)
		}
		at := <-chunk
		<-replied
		for len(chunk) > 0 {
			<-chunk
		}
		w.instant.mu.Lock()
		took = append(took, at.Sub(w.instant.first[question]))
		w.instant.mu.Unlock()
	}
	b.ReportMetric(percentile(took, 50), "p50-ms")
	b.ReportMetric(percentile(took, 95), "p95-ms")
}
