package runtime

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/agentplatform/agentplatform/pkg/agentcore"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/trace"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// Config says what runs the turns, and how many at once.
type Config struct {
	Runner   *turn.Runner // its Publish may be nil: then subscribers are reached by whoever follows the invocation. Required
	MaxTurns int          // at once; default 16
}

// Server is the runtime's HTTP handler.
type Server struct {
	config Config
	mux    *http.ServeMux
	ctx    context.Context // of the turns
	cancel context.CancelFunc

	mu       sync.Mutex
	stopping bool
	running  map[string]bool // turn ids
	changed  time.Time       // when there was last the first or no turn
	turns    sync.WaitGroup
}

// New makes the handler. Who made it must Stop it.
func New(c Config) *Server {
	if c.MaxTurns <= 0 {
		c.MaxTurns = 16
	}
	s := &Server{config: c, mux: http.NewServeMux(), running: map[string]bool{}, changed: time.Now()}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.mux.HandleFunc("GET /ping", s.ping)
	s.mux.HandleFunc("POST /invocations", s.invoke)
	s.mux.HandleFunc("/ping", notAllowed("GET"))
	s.mux.HandleFunc("/invocations", notAllowed("POST"))
	s.mux.HandleFunc("/", notFound)
	return s
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Stop takes no more turns, hands back those that run and waits for that, until ctx ends.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	s.cancel()
	done := make(chan struct{})
	go func() {
		s.turns.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		return fmt.Errorf("%d turns were not handed back; their leases run out within %s", len(s.running), turn.Lease)
	}
}

// Start takes a turn and runs it until its end, by itself. It gives a reason, or an error, when the turn does not run here.
func (s *Server) Start(d turn.Dispatch) (agentcore.Reason, error) { return s.start(d, newFeed()) }

func (s *Server) start(d turn.Dispatch, out *feed) (agentcore.Reason, error) {
	if reason := s.begin(d.TurnID); reason != "" {
		return reason, nil
	}
	runner := *s.config.Runner
	runner.Selected = true
	runner.Publish = both{out, s.config.Runner.Publish}
	claimed, err := runner.Claim(s.ctx, d)
	if claimed == nil {
		s.end(d.TurnID)
		return agentcore.NotDue, err
	}
	out.tell(agentcore.EventAccepted, map[string]string{"turnId": d.TurnID})
	go func() {
		defer s.end(d.TurnID)
		s.run(claimed, d, out)
	}()
	return "", nil
}

// run takes a claimed turn to its end. A panic is this turn's only: its lease runs out, and another attempt takes it up.
func (s *Server) run(claimed *turn.Claimed, d turn.Dispatch, out *feed) {
	var status turn.Status
	defer func() {
		if p := recover(); p != nil {
			slog.ErrorContext(trace.In(s.ctx, trace.Scope{RequestID: d.RequestID}), "a turn panicked", "tenant_id", d.TenantID, "turn_id", d.TurnID, "panic", p, "stack", string(debug.Stack()))
		}
		out.end(status)
	}()
	var err error
	if status, err = claimed.Run(s.ctx); err != nil {
		slog.ErrorContext(trace.In(s.ctx, trace.Scope{TenantID: d.TenantID, TurnID: d.TurnID, RequestID: d.RequestID}), "the turn goes on in another attempt", "error", err)
	}
}

func (s *Server) begin(turnID string) agentcore.Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopping:
		return agentcore.Stopping
	case s.running[turnID]:
		return agentcore.NotDue
	case len(s.running) >= s.config.MaxTurns:
		return agentcore.Busy
	}
	if s.running[turnID] = true; len(s.running) == 1 {
		s.changed = time.Now()
	}
	s.turns.Add(1)
	return ""
}

func (s *Server) end(turnID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.running, turnID); len(s.running) == 0 {
		s.changed = time.Now()
	}
	s.turns.Done()
}

// both gives events to whoever follows the invocation, and to the subscribers.
type both struct {
	client      *feed
	subscribers publish.Publisher // nil: the client reaches them
}

func (b both) Publish(ctx context.Context, events ...publish.Event) error {
	err := b.client.Publish(ctx, events...)
	if b.subscribers == nil {
		return err
	}
	return b.subscribers.Publish(ctx, events...)
}
