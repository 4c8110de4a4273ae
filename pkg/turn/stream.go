package turn

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/publish"
)

const (
	coalesce     = 50 * time.Millisecond // how long text is held back to be joined with what follows
	moment       = 2 * time.Millisecond  // how long the first piece is: a model that answers at once is stored with its reply, in one transaction
	flushTimeout = 5 * time.Second       // of one write
	flushPause   = time.Second           // after a write that failed
)

// stream stores an attempt's text and activity and hands it to the subscribers, in order, from a goroutine of its own: the model is read on
// while a slow database or publisher works, and what arrives meanwhile is joined. What an attempt says is written like all else that it does:
// only while it holds the turn.
//
// All chunks of one message id, concatenated, are that message's body. When the model starts an answer again (Restart), the text that
// subscribers already have is swallowed as long as the new answer repeats it; where it differs, the message id changes and all of the new
// text is sent under it. It changes, too, when nobody knows whether a write was committed.
type stream struct {
	runner  *Runner
	attempt *attempt

	mu       sync.Mutex
	id       string          // message id
	body     strings.Builder // all text of this message id
	kept     int             // bytes of body that a Restart cannot take back: earlier model calls'
	repeated int             // after a Restart: bytes of body that the new answer has repeated; -1: not restarted
	queue    []publish.Event
	state    publish.Activity

	writing sync.Mutex    // held while a part of the queue is stored and published
	wake    chan struct{} // 1 deep: there is something in the queue
	stop    func()        // may be called twice
	done    chan struct{}
}

func newStream(ctx context.Context, r *Runner, a *attempt) *stream {
	stop := make(chan struct{})
	s := &stream{runner: r, attempt: a, id: ident.New(), repeated: -1, wake: make(chan struct{}, 1),
		stop: sync.OnceFunc(func() { close(stop) }), done: make(chan struct{})}
	go s.run(context.WithoutCancel(ctx), stop) // what was said before the turn ended is still sent
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
	for _, e := range s.attempt.activity(state, activity) {
		s.push(e)
	}
}

// activity is what the subscribers of thread and agent are told of the agent's state.
func (a *attempt) activity(state publish.Activity, activity string) []publish.Event {
	return []publish.Event{
		publish.AgentStatus{TenantID: a.tenantID, ThreadID: a.threadID, AgentID: a.agentID, Status: state, Activity: &activity},
		publish.AgentActivity{TenantID: a.tenantID, ThreadID: a.threadID, AgentID: a.agentID, Status: state, Activity: &activity, Timestamp: ident.Now()},
	}
}

func (s *stream) chunk(text string, done bool) publish.StreamChunk {
	return publish.StreamChunk{TenantID: s.attempt.tenantID, ThreadID: s.attempt.threadID, MessageID: s.id, Chunk: text, Done: done}
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
	s.signal()
}

func (s *stream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// finish gives what was not stored yet, for the transaction that ends the attempt: what is said from here on would come behind it. replied says
// that the text is the reply, whose message id is settled now.
func (s *stream) finish(replied bool) []publish.Event {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if replied && s.body.Len() > 0 {
		s.push(s.chunk("", true))
	}
	rest := s.queue
	s.queue = nil
	return rest
}

// unfinish takes back what finish gave: the attempt goes on after all.
func (s *stream) unfinish(rest []publish.Event) {
	var open []publish.Event
	for _, e := range rest {
		if c, ok := e.(publish.StreamChunk); ok {
			if c.Done = false; c.Chunk == "" {
				continue
			}
			e = c
		}
		open = append(open, e)
	}
	s.restore(open, false)
}

// close ends the stream without another word: what was not stored is said again where the turn goes on. It may be called twice.
func (s *stream) close() {
	s.stop()
	<-s.done
}

func (s *stream) run(ctx context.Context, stop <-chan struct{}) {
	defer close(s.done)
	pause := time.NewTimer(0)
	defer pause.Stop()
	<-pause.C
	var next time.Time // flush
	for {
		select {
		case <-stop:
			return
		case <-s.wake:
		}
		pause.Reset(max(moment, time.Until(next)))
		select {
		case <-stop:
			return
		case <-pause.C:
		}
		wait := s.flush(ctx)
		next = time.Now().Add(wait)
	}
}

// flush stores the queue and then publishes it. It returns how long to wait before the next. What cannot be published is there to be read; what
// cannot be stored is tried again, unless the attempt has lost its turn.
func (s *stream) flush(ctx context.Context) time.Duration {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	events := s.queue
	s.queue = nil
	s.mu.Unlock()
	if len(events) == 0 {
		return 0
	}
	a := s.attempt
	var b pgx.Batch
	b.Queue(`select hold_turn($1, $2)`, a.turnID, a.lease)
	notice := notify.QueueTurn(&b, a.tenantID, a.threadUUID, a.turnID, events...)
	limited, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	if err := s.runner.DB.Once(limited, a.tenantID, &b); err != nil {
		if isLeaseLost(err) {
			return flushPause // nobody wants it any more
		}
		slog.WarnContext(ctx, "storing the stream failed; it is tried again", "tenant_id", a.tenantID, "turn_id", a.turnID, "error", err)
		s.restore(events, unclear(err))
		return flushPause
	}
	s.runner.signal("stream stored")
	notify.Publish(ctx, s.runner.Publish, a.tenantID, notice)
	for _, e := range events {
		if _, ok := e.(publish.StreamChunk); ok {
			return coalesce
		}
	}
	return 0
}

// restore puts back what was not stored. Text that may have been, and would then be there twice, is sent again under another message id, whole.
func (s *stream) restore(events []publish.Event, unclear bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	later := s.queue
	s.queue = nil
	again := false
	for _, e := range append(events, later...) {
		if _, chunk := e.(publish.StreamChunk); chunk && unclear {
			again = true
			continue
		}
		s.push(e)
	}
	switch {
	case !again:
	case s.repeated >= 0:
		s.renew(s.body.String()[:s.repeated])
	default:
		s.renew(s.body.String())
	}
	s.signal()
}

// unclear reports whether a transaction that ended with err may have been committed all the same: the answer did not come.
func unclear(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.SeverityUnlocalized == "FATAL" // the connection was ended, before or after the commit
	}
	return !pgconn.SafeToRetry(err) && !errors.As(err, new(*pgconn.ConnectError))
}
