package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/local/letters"
	"github.com/agentplatform/agentplatform/pkg/manifest"
)

// queue is asynchronous invocation on one machine: each invoke runs at once in a goroutine of its own, with its row's timeout. What fails
// is tried again, and at last put to the dead letters, as in the cloud. What the platform's stop cuts short is no failure: a sweep finds it again.
//
// A row that reserves a concurrency of one runs one invoke after the other; an invoke that says the same as one that waits adds nothing.
type queue struct {
	mu        sync.Mutex
	rows      manifest.Manifest         // set once, by serve
	functions map[string]lambda.Handler // likewise
	closed    bool
	busy      map[string]bool         // rows with a concurrency of one that run
	waiting   map[string][]invocation // what they are asked next
	running   sync.WaitGroup
	ctx       context.Context
	cancel    context.CancelFunc

	letters    *letters.Box  // where what failed each time is kept; nil: nowhere
	retryAfter time.Duration // from the first try to the second; twice as long from there to the third
}

// invocation is an invoke on its way.
type invocation struct {
	row      manifest.Row
	function lambda.Handler
	id       string // of the request, the same in each try
	payload  []byte
	tried    int // how often it has failed
}

var errStopping = errors.New("the platform is stopping")

func newQueue() *queue {
	q := &queue{busy: map[string]bool{}, waiting: map[string][]invocation{}, retryAfter: time.Second}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	return q
}

// serve says what the names stand for; functions invoke one another, so they are made with the queue.
func (q *queue) serve(rows manifest.Manifest, functions map[string]lambda.Handler) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.rows, q.functions = rows, functions
}

// function is a function with its row; nil: there is none of that name.
func (q *queue) function(name string) (manifest.Row, lambda.Handler) {
	q.mu.Lock()
	defer q.mu.Unlock()
	row, _ := q.rows.Row(name)
	return row, q.functions[name]
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
	q.start(invocation{row: row, function: h, id: ident.New(), payload: body})
	return nil
}

// start runs a call as soon as its row allows. The lock is held.
func (q *queue) start(c invocation) {
	name := c.row.Name
	if c.row.Reserved == nil || *c.row.Reserved != 1 {
		q.running.Go(func() { q.run(c) })
		return
	}
	if q.busy[name] {
		if !slices.ContainsFunc(q.waiting[name], func(w invocation) bool { return bytes.Equal(w.payload, c.payload) }) {
			q.waiting[name] = append(q.waiting[name], c)
		}
		return
	}
	q.busy[name] = true
	q.running.Go(func() {
		for more := true; more; {
			q.run(c)
			c, more = q.next(name)
		}
	})
}

func (q *queue) next(name string) (c invocation, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.waiting[name]) == 0 {
		q.busy[name] = false
		return invocation{}, false
	}
	c, q.waiting[name] = q.waiting[name][0], q.waiting[name][1:]
	return c, true
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
