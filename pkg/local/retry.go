package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/agentplatform/agentplatform/pkg/deadletter"
	"github.com/agentplatform/agentplatform/pkg/local/host"
	"github.com/agentplatform/agentplatform/pkg/trace"
)

// tries is how often a call is tried in all, as in the cloud.
const tries = 3

// panicked is a panic of a function, which fails as by an error.
type panicked struct{ value any }

func (p panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// run tries a call. One that failed is started again later, as if it had just come: others of its row need not wait for it.
func (q *queue) run(c invocation) {
	err := q.try(c)
	if err == nil || q.ctx.Err() != nil {
		return
	}
	if c.tried++; c.tried == tries {
		q.giveUp(c, err)
		return
	}
	wait := q.retryAfter * time.Duration(c.tried)
	slog.Warn("a function failed and is tried again", "function", c.row.Name, "request_id", c.id, "try", c.tried, "wait", wait, "error", err)
	q.running.Go(func() {
		select {
		case <-time.After(wait):
		case <-q.ctx.Done():
			return
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		if !q.closed {
			q.start(c)
		}
	})
}

func (q *queue) try(c invocation) error {
	ctx, cancel := context.WithTimeout(trace.In(q.ctx, trace.Scope{RequestID: c.id}), c.row.Timeout.Duration())
	defer cancel()
	_, err := safely(ctx, c.function, c.payload)
	return err
}

// giveUp puts a call to the dead letters.
func (q *queue) giveUp(c invocation, err error) {
	log := slog.With("function", c.row.Name, "request_id", c.id, "try", c.tried, "error", err)
	if q.letters == nil {
		log.Error("a function failed for good")
		return
	}
	id, lost := q.letters.Put(deadletter.Exhausted(c.id, functionARN(c.row.Name), c.payload, response(err), c.tried, time.Now()))
	if lost != nil {
		log.Error("a function failed for good, and its dead letter is lost", "lost", lost)
		return
	}
	log.Error("a function failed for good; its dead letter is kept", "letter", id)
}

// functionARN is what a function would be called in AWS.
func functionARN(name string) string {
	return "arn:aws:lambda:" + region + ":" + account + ":function:" + functionPrefix + name
}

// response is what Lambda's runtime answers with an error.
func response(err error) json.RawMessage {
	var outside *host.FunctionError // of a function in a process of its own
	if errors.As(err, &outside) {
		return outside.Payload
	}
	named := messages.InvokeResponse_Error{}
	if !errors.As(err, &named) {
		named = messages.InvokeResponse_Error{Type: typeName(err), Message: err.Error()}
	}
	text, _ := json.Marshal(named) // strings and numbers only
	return text
}

// typeName is an error's type in the runtime's words: "PgError", "errorString"; of a panic its value's.
func typeName(err error) string {
	var value any = err
	if p := (panicked{}); errors.As(err, &p) && p.value != nil {
		value = p.value
	}
	t := reflect.TypeOf(value)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}
