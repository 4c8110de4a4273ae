package turn

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/publish"
)

// coalesce is how long text is held back to be joined with what follows. The first piece never waits.
const coalesce = 50 * time.Millisecond

// stream hands an attempt's text and activity to the subscribers, in order, from a goroutine of its own: the model is read on while a
// slow publisher works, and what arrives meanwhile is joined.
//
// All chunks of one message id, concatenated, are that message's body. When the model starts an answer again (Restart), the text that
// subscribers already have is swallowed as long as the new answer repeats it; where it differs, the message id changes and all of the new
// text is sent under it.
type stream struct {
	to       publish.Publisher
	tenantID string
	threadID string
	agentID  string

	mu       sync.Mutex
	id       string          // message id
	body     strings.Builder // all text of this message id
	kept     int             // bytes of body that a Restart cannot take back: earlier model calls'
	repeated int             // after a Restart: bytes of body that the new answer has repeated; -1: not restarted
	queue    []publish.Event
	state    publish.Activity

	wake  chan struct{}      // 1 deep: there is something in the queue
	drain chan chan struct{} // somebody waits until the queue was handed over
	stop  chan struct{}
	done  chan struct{}
}

func newStream(ctx context.Context, to publish.Publisher, a *attempt) *stream {
	s := &stream{to: to, tenantID: a.tenantID, threadID: a.threadID, agentID: a.agentID, id: ident.New(), repeated: -1,
		wake: make(chan struct{}, 1), drain: make(chan chan struct{}), stop: make(chan struct{}), done: make(chan struct{})}
	go s.run(context.WithoutCancel(ctx)) // what was said before the turn ended is still sent
	return s
}

// Text is the next piece of the model's answer. A message holds no NUL, so neither does what is streamed of it.
func (s *stream) Text(delta string) {
	delta = strings.ReplaceAll(delta, "\x00", "")
	s.mu.Lock()
	defer s.mu.Unlock()
	if delta == "" {
		return
	}
	if s.repeated >= 0 {
		if delta = s.swallow(delta); delta == "" {
			return
		}
	}
	if s.state != publish.Streaming {
		s.setState(publish.Streaming, "writing the reply")
	}
	s.body.WriteString(delta)
	s.push(s.chunk(delta, false))
}

// swallow takes a delta of a restarted answer and returns what is new in it.
func (s *stream) swallow(delta string) string {
	old := s.body.String()
	rest := old[s.repeated:]
	switch {
	case len(delta) < len(rest) && strings.HasPrefix(rest, delta):
		s.repeated += len(delta)
		return ""
	case strings.HasPrefix(delta, rest):
		s.repeated = -1
		return delta[len(rest):]
	}
	s.renew(old[:s.repeated])
	return delta
}

// renew gives up the message id; the text that is still good is sent again under the new one.
func (s *stream) renew(good string) {
	s.id, s.repeated = ident.New(), -1
	s.body.Reset()
	s.body.WriteString(good)
	if good != "" {
		s.push(s.chunk(good, false))
	}
}

// Restart says that the model begins its answer again.
func (s *stream) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.body.Len() > s.kept {
		s.repeated = s.kept
	}
}

// keep says that the model's answer is complete; what another model call adds is a new paragraph.
func (s *stream) keep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.repeated >= 0 { // the restarted answer ended before it had repeated everything
		s.renew(s.body.String()[:s.repeated])
	}
	s.kept = s.body.Len()
}

// paragraph separates the texts of two model calls.
func (s *stream) paragraph() {
	if s.text() != "" {
		s.Text("\n\n")
		s.keep()
	}
}

func (s *stream) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.body.String()
}

func (s *stream) messageID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// status tells the subscribers of thread and agent what the agent does, once a change.
func (s *stream) status(state publish.Activity, activity string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setState(state, activity)
}

func (s *stream) setState(state publish.Activity, activity string) {
	s.state = state
	for _, e := range activityEvents(s.tenantID, s.threadID, s.agentID, state, activity) {
		s.push(e)
	}
}

func activityEvents(tenantID, threadID, agentID string, state publish.Activity, activity string) []publish.Event {
	return []publish.Event{
		publish.AgentStatus{TenantID: tenantID, ThreadID: threadID, AgentID: agentID, Status: state, Activity: &activity},
		publish.AgentActivity{TenantID: tenantID, ThreadID: threadID, AgentID: agentID, Status: state, Activity: &activity, Timestamp: ident.Now()},
	}
}

func (s *stream) chunk(text string, done bool) publish.StreamChunk {
	return publish.StreamChunk{TenantID: s.tenantID, ThreadID: s.threadID, MessageID: s.id, Chunk: text, Done: done}
}

// push queues an event; a chunk joins the chunk before it.
func (s *stream) push(e publish.Event) {
	if c, ok := e.(publish.StreamChunk); ok && len(s.queue) > 0 {
		if last, ok := s.queue[len(s.queue)-1].(publish.StreamChunk); ok && last.MessageID == c.MessageID {
			last.Chunk, last.Done = last.Chunk+c.Chunk, c.Done
			s.queue[len(s.queue)-1] = last
			return
		}
	}
	s.queue = append(s.queue, e)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// finish marks the reply as complete and waits until all of it was handed over.
func (s *stream) finish() {
	s.mu.Lock()
	if s.body.Len() > 0 {
		s.push(s.chunk("", true))
	}
	s.mu.Unlock()
	drained := make(chan struct{})
	s.drain <- drained
	<-drained
}

// close waits until everything was handed over. It may be called twice.
func (s *stream) close() {
	select {
	case <-s.stop:
	default:
		close(s.stop)
	}
	<-s.done
}

func (s *stream) run(ctx context.Context) {
	defer close(s.done)
	pause := time.NewTimer(0)
	defer pause.Stop()
	<-pause.C
	wake := s.wake // nil while text is held back
	for {
		select {
		case <-wake:
			if s.flush(ctx) {
				pause.Reset(coalesce)
				wake = nil
			}
		case <-pause.C:
			wake = s.wake
		case drained := <-s.drain:
			s.flush(ctx)
			close(drained)
		case <-s.stop:
			s.flush(ctx)
			return
		}
	}
}

// flush publishes the queue; it reports whether text was among it. A chunk that cannot be published is lost: the whole reply comes with
// its NewMessageEvent.
func (s *stream) flush(ctx context.Context) bool {
	s.mu.Lock()
	events := s.queue
	s.queue = nil
	s.mu.Unlock()
	if len(events) == 0 {
		return false
	}
	if err := s.to.Publish(ctx, events...); err != nil {
		slog.WarnContext(ctx, "publishing the stream failed", "tenant_id", s.tenantID, "thread_id", s.threadID, "error", err)
	}
	for _, e := range events {
		if _, ok := e.(publish.StreamChunk); ok {
			return true
		}
	}
	return false
}
