package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/manifest"
)

// queue is asynchronous invocation on one machine: each invoke runs at once in a goroutine of its own, with its row's timeout. What fails
// is logged; what must not be lost is found again by the reaper, as in the cloud.
type queue struct {
	rows manifest.Manifest

	mu        sync.Mutex
	functions map[string]lambda.Handler // set once, by serve
	closed    bool
	running   sync.WaitGroup
	ctx       context.Context
	cancel    context.CancelFunc
}

var errStopping = errors.New("the platform is stopping")

func newQueue(rows manifest.Manifest) *queue {
	q := &queue{rows: rows}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	return q
}

// serve says what the names stand for; functions invoke one another, so they are made with the queue.
func (q *queue) serve(functions map[string]lambda.Handler) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.functions = functions
}

// Invoke implements invoke.Invoker.
func (q *queue) Invoke(_ context.Context, function string, payload any) error {
	body, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	row, known := q.rows.Row(function)
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.functions[function]
	switch {
	case q.closed:
		return errStopping
	case !known || h == nil:
		return fmt.Errorf("no function %q", function)
	}
	q.running.Go(func() { q.run(row, h, body) })
	return nil
}

func (q *queue) run(row manifest.Row, h lambda.Handler, body []byte) {
	ctx, cancel := context.WithTimeout(q.ctx, row.Timeout.Duration())
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			slog.Error("a function panicked", "function", row.Name, "panic", p)
		}
	}()
	if _, err := h.Invoke(ctx, body); err != nil && q.ctx.Err() == nil {
		slog.Error("a function failed", "function", row.Name, "error", err)
	}
}

// schedule runs the rows that a rule calls, once now and then on time. Rules are `rate(<n> minute)` or `rate(<n> minutes)`.
func (q *queue) schedule() error {
	for _, row := range q.rows.Rows {
		for _, rule := range row.Triggers("schedule") {
			var n int
			if _, err := fmt.Sscanf(rule, "rate(%d minute", &n); err != nil || n < 1 {
				return fmt.Errorf("function %s: schedule %q is not a rate in minutes", row.Name, rule)
			}
			q.running.Go(func() {
				tick := time.NewTicker(time.Duration(n) * time.Minute)
				defer tick.Stop()
				for {
					q.run(row, q.functions[row.Name], []byte(`{}`))
					select {
					case <-tick.C:
					case <-q.ctx.Done():
						return
					}
				}
			})
		}
	}
	return nil
}

// close ends what runs and waits for it. A turn that is cut short goes on at the next start.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.cancel()
	q.running.Wait()
}
