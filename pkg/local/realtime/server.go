package realtime

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// Config is what a Server needs.
type Config struct {
	Hub      *Hub     // where events come from. Required
	Verifier Verifier // of the tokens. Required
	Executor Executor // of the subscriptions. Required

	KeepAlive        time.Duration // between ka messages; default 60 s, clients give up after 300 s without one
	InitTimeout      time.Duration // for the first message after the handshake; default 15 s
	WriteTimeout     time.Duration // for one message to be taken by the network; default 10 s
	StartTimeout     time.Duration // for verifying and preparing one subscription; default 10 s
	ExpiryGrace      time.Duration // how long after its token's exp a subscription may run, as the verifier tolerates; default 30 s
	MaxAge           time.Duration // of a connection; default 24 h, as AppSync
	MaxSubscriptions int           // of a connection; default 100, as AppSync
	MaxMessage       int64         // bytes of a client's message; default 256 KiB
	QueueFrames      int           // messages that may wait for a connection; default 1,024
	QueueBytes       int           // bytes that may wait for a connection; default 4 MiB
	Log              *slog.Logger  // default slog.Default()
}

func (c *Config) defaults() {
	for field, value := range map[*time.Duration]time.Duration{
		&c.KeepAlive: time.Minute, &c.InitTimeout: 15 * time.Second, &c.WriteTimeout: 10 * time.Second, &c.StartTimeout: 10 * time.Second,
		&c.ExpiryGrace: 30 * time.Second, &c.MaxAge: 24 * time.Hour,
	} {
		if *field <= 0 {
			*field = value
		}
	}
	for field, value := range map[*int]int{&c.MaxSubscriptions: 100, &c.QueueFrames: 1024, &c.QueueBytes: 4 << 20} {
		if *field <= 0 {
			*field = value
		}
	}
	if c.MaxMessage <= 0 {
		c.MaxMessage = 256 << 10
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
}

// Server is the WebSocket endpoint; mount it at /graphql and /graphql/realtime. Close it: http.Server does not wait for WebSockets.
type Server struct {
	config  Config
	serving sync.WaitGroup

	mu          sync.Mutex
	closed      bool
	connections map[*connection]struct{}
}

// New makes a Server; it fails on an incomplete config only.
func New(c Config) (*Server, error) {
	if c.Hub == nil || c.Verifier == nil || c.Executor == nil {
		return nil, errors.New("realtime: Hub, Verifier and Executor are required")
	}
	c.defaults()
	return &Server{config: c, connections: map[*connection]struct{}{}}, nil
}

// ServeHTTP serves one connection until it ends.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		http.Error(w, "shutting down", http.StatusServiceUnavailable)
		return
	}
	defer s.serving.Done()
	handshake := s.authenticate(r)
	taken := &hijacked{ResponseWriter: w}
	socket, err := websocket.Accept(taken, r, &websocket.AcceptOptions{
		Subprotocols: []string{subprotocol},
		// Tokens are sent explicitly and never as cookies, so another origin's page has nothing to ride on; AppSync checks no origin either.
		InsecureSkipVerify: true,
	})
	if err != nil {
		return // Accept has answered
	}
	if socket.Subprotocol() != subprotocol {
		handshake = &Problem{ErrorType: problemBadRequest, Message: "NoProtocolError", ErrorCode: http.StatusBadRequest}
	}
	c := newConnection(s.config, socket, taken.conn, handshake)
	if !s.track(c) {
		c.end(websocket.StatusGoingAway, goingAway)
	}
	defer s.forget(c)
	c.serve()
}

// hijacked keeps the network connection that the WebSocket library takes from it.
type hijacked struct {
	http.ResponseWriter
	conn net.Conn
}

func (h *hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(h.ResponseWriter).Hijack()
	h.conn = conn
	return conn, buffered, err
}

const goingAway = "the server is shutting down"

// authenticate is nil when the handshake's token is good.
func (s *Server) authenticate(r *http.Request) *Problem {
	presented, err := token(r)
	if err == nil {
		_, err = s.config.Verifier.Verify(r.Context(), presented)
	}
	if err == nil {
		return nil
	}
	p := refusal(err)
	if p.ErrorCode >= 500 {
		s.config.Log.Error("realtime: token not verified", "error", err)
	}
	return &p
}

func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.serving.Add(1)
	}
	return !s.closed
}

func (s *Server) track(c *connection) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections[c] = struct{}{}
	return !s.closed
}

func (s *Server) forget(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.connections, c)
}

// Close ends all connections with 1001 and waits for them; those that have not ended when ctx is done are cut. New ones are refused.
func (s *Server) Close(ctx context.Context) error {
	s.each(func(c *connection) { c.end(websocket.StatusGoingAway, goingAway) })
	done := make(chan struct{})
	go func() {
		s.serving.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		s.each(func(c *connection) { c.cut() })
		<-done
		return ctx.Err()
	}
}

// each closes the server to new connections and visits those that it has.
func (s *Server) each(visit func(*connection)) {
	s.mu.Lock()
	s.closed = true
	var all []*connection
	for c := range s.connections {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		visit(c)
	}
}
