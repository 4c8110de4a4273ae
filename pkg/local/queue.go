package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/manifest"
)

// queue is asynchronous invocation on one machine: each invoke runs at once in a goroutine of its own, with its row's timeout. What fails
// is logged; what must not be lost is found again by a sweep, as in the cloud.
//
// A row that reserves a concurrency of one runs one invoke after the other; an invoke that says the same as one that waits adds nothing.
type queue struct {
	mu        sync.Mutex
	rows      manifest.Manifest         // set once, by serve
	functions map[string]lambda.Handler // likewise
	closed    bool
	busy      map[string]bool     // rows with a concurrency of one that run
	waiting   map[string][][]byte // what they are asked next
	running   sync.WaitGroup
	ctx       context.Context
	cancel    context.CancelFunc
}

var errStopping = errors.New("the platform is stopping")

func newQueue() *queue {
	q := &queue{busy: map[string]bool{}, waiting: map[string][][]byte{}}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	return q
}

// serve says what the names stand for; functions invoke one another, so they are made with the queue.
func (q *queue) serve(rows manifest.Manifest, functions map[string]lambda.Handler) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.rows, q.functions = rows, functions
}

// Invoke implements invoke.Invoker.
func (q *queue) Invoke(_ context.Context, function string, payload any) error {
	body, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	row, known := q.rows.Row(function)
	h := q.functions[function]
	switch {
	case q.closed:
		return errStopping
	case !known || h == nil:
		return fmt.Errorf("no function %q", function)
	}
	q.start(row, h, body)
	return nil
}

// start runs a function as soon as its row allows. The lock is held.
func (q *queue) start(row manifest.Row, h lambda.Handler, body []byte) {
	if row.Reserved == nil || *row.Reserved != 1 {
		q.running.Go(func() { q.run(row, h, body) })
		return
	}
	if q.busy[row.Name] {
		if !slices.ContainsFunc(q.waiting[row.Name], func(w []byte) bool { return bytes.Equal(w, body) }) {
			q.waiting[row.Name] = append(q.waiting[row.Name], body)
		}
		return
	}
	q.busy[row.Name] = true
	q.running.Go(func() {
		for more := true; more; {
			q.run(row, h, body)
			body, more = q.next(row.Name)
		}
	})
}

func (q *queue) next(name string) (body []byte, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.waiting[name]) == 0 {
		q.busy[name] = false
		return nil, false
	}
	body, q.waiting[name] = q.waiting[name][0], q.waiting[name][1:]
	return body, true
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

// schedule runs the rows that a rule calls, once now and then at multiples of the rule's time, or of the one given for the row's name.
// Rules are `rate(<n> minute)` or `rate(<n> minutes)`.
func (q *queue) schedule(instead map[string]time.Duration) error {
	for _, row := range q.rows.Rows {
		for _, rule := range row.Triggers("schedule") {
			var n int
			if _, err := fmt.Sscanf(rule, "rate(%d minute", &n); err != nil || n < 1 {
				return fmt.Errorf("function %s: schedule %q is not a rate in minutes", row.Name, rule)
			}
			every := time.Duration(n) * time.Minute
			if given, ok := instead[row.Name]; ok {
				every = given
			}
			q.running.Go(func() {
				for {
					if err := q.Invoke(q.ctx, row.Name, struct{}{}); err != nil {
						return // stopping
					}
					now := time.Now()
					select {
					case <-time.After(now.Truncate(every).Add(every).Sub(now)):
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
