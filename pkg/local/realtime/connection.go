package realtime

import (
	"context"
	"encoding/json"
	"net"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/agentplatform/agentplatform/pkg/ident"
)

// Close codes of our own (RFC 6455 leaves 4000 to 4999 to applications).
const (
	closedUnauthorized = websocket.StatusCode(4401) // no good token, or no longer
	closedTooOld       = websocket.StatusCode(4408) // MaxAge
)

// aliveFor is how long a client should wait for a ka before it gives up, as AppSync tells it.
const aliveFor = 300 * time.Second

// connection is one WebSocket: a goroutine that reads and acts, and one that writes and closes.
type connection struct {
	config    Config
	id        string // in the log
	socket    *websocket.Conn
	handshake *Problem // why the first message is answered by connection_error; nil: it is not
	queue     *queue
	cut       func()          // ends the socket at once
	ctx       context.Context // ends with the connection
	greeted   chan struct{}   // closed after the first message has been answered

	operations map[string]*operation // of the reading goroutine only
}

// newConnection takes over a socket and the network connection below it.
func newConnection(config Config, socket *websocket.Conn, below net.Conn, handshake *Problem) *connection {
	ctx, cancel := context.WithCancel(context.Background())
	cut := func() {
		cancel()
		// The context alone ends no close handshake that waits for the client with a timer of its own.
		_ = below.Close()
	}
	return &connection{
		config: config, id: ident.New(), socket: socket, handshake: handshake,
		queue: newQueue(config.QueueFrames, config.QueueBytes),
		cut:   cut, ctx: ctx, greeted: make(chan struct{}), operations: map[string]*operation{},
	}
}

// end closes the connection after what waits has been written.
func (c *connection) end(code websocket.StatusCode, reason string) { c.queue.end(code, reason) }

func (c *connection) send(message []byte) { c.queue.put(item{message: message}) }

// serve runs the connection until it has ended and nothing of it is left.
func (c *connection) serve() {
	defer c.cut()
	tooOld := time.AfterFunc(c.config.MaxAge, func() { c.end(closedTooOld, "this connection has reached its greatest age") })
	defer tooOld.Stop()
	silent := time.AfterFunc(c.config.InitTimeout, func() { c.end(websocket.StatusPolicyViolation, "no connection_init came") })
	defer silent.Stop()

	written := make(chan struct{})
	go func() {
		defer close(written)
		c.write()
	}()
	defer func() {
		for _, o := range c.operations {
			c.detach(o)
		}
		c.end(websocket.StatusNormalClosure, "") // the socket is gone: this only wakes the writer
		<-written
	}()
	c.read(silent)
}

// read acts on messages until the socket has closed. After an end it goes on reading, for the close handshake, without acting.
func (c *connection) read(silent *time.Timer) {
	c.socket.SetReadLimit(c.config.MaxMessage)
	greeted := sync.OnceFunc(func() { close(c.greeted) })
	for {
		kind, message, err := c.socket.Read(c.ctx)
		switch {
		case err != nil:
			return // closed; a message that is too big has been answered with 1009
		case kind == websocket.MessageText && !utf8.Valid(message):
			c.end(websocket.StatusInvalidFramePayloadData, "a text message is not UTF-8")
		case c.queue.over():
		default:
			silent.Stop()
			c.act(kind, message)
			greeted()
		}
	}
}

// act answers one message.
func (c *connection) act(kind websocket.MessageType, message []byte) {
	if c.handshake != nil {
		// Only now, and not at once: Amplify listens from its first message on.
		c.send(problems(typeRefused, "", *c.handshake))
		c.end(closedUnauthorized, c.handshake.ErrorType)
		return
	}
	var m incoming
	if kind != websocket.MessageText || json.Unmarshal(message, &m) != nil {
		c.send(problems(typeError, "", Problem{ErrorType: problemUnsupported, Message: "unknown not supported through the realtime channel"}))
		return
	}
	switch m.Type {
	case typeInit:
		c.greet()
	case typeStart: // without connection_init too, which AppSync calls optional
		c.start(m)
	case typeStop:
		c.stop(m.ID)
	default:
		c.send(problems(typeError, m.ID, Problem{ErrorType: problemUnsupported, Message: "unknown not supported through the realtime channel"}))
	}
}

func (c *connection) greet() {
	c.send(outgoing{Type: typeAck, Payload: map[string]int64{"connectionTimeoutMs": aliveFor.Milliseconds()}}.encode())
	c.send(alive)
}

var alive = outgoing{Type: typeAlive}.encode()

// write writes what waits until the connection ends, then closes it.
func (c *connection) write() {
	greeted := c.greeted
	var ka <-chan time.Time
	var frame []byte
	for {
		select {
		case <-greeted: // AppSync's first ka comes after the connection_ack
			ticker := time.NewTicker(c.config.KeepAlive)
			defer ticker.Stop()
			greeted, ka = nil, ticker.C
		case <-ka:
			c.send(alive)
		case <-c.queue.ready:
		}
		for {
			i, ok, ended := c.queue.take()
			if ended {
				_ = c.socket.Close(c.queue.ending()) // waits up to 10 s for the client; cut ends it
				return
			}
			if !ok {
				break
			}
			frame = i.appendTo(c.ctx, frame[:0])
			if !c.put(frame) {
				c.cut()
				return
			}
		}
	}
}

// put writes one frame; a client that does not take it in time is cut.
func (c *connection) put(frame []byte) bool {
	ctx, cancel := context.WithTimeout(c.ctx, c.config.WriteTimeout)
	defer cancel()
	return c.socket.Write(ctx, websocket.MessageText, frame) == nil
}
