package bucket

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
)

// listener knows the connections on which nothing has arrived yet. HTTP clients keep such spares, and fasthttp takes
// them for requests at work: its shutdown would wait for them without end.
type listener struct {
	net.Listener
	mu      sync.Mutex
	stopped bool
	silent  map[*conn]struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	heard := &conn{Conn: c, from: l}
	l.silent[heard] = struct{}{}
	return heard, nil
}

// stop closes the listener and the silent connections.
func (l *listener) stop() {
	_ = l.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.silent {
		_ = c.Conn.Close()
	}
}

// Close may be called again, as stop and then fasthttp do.
func (l *listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return nil
	}
	l.stopped = true
	return l.Listener.Close()
}

type conn struct {
	net.Conn
	from *listener
	once sync.Once
}

// Read ends where the connection breaks: fiber would print a reset, or our own stop, as an internal error.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.heard()
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF
	}
	return n, err
}

func (c *conn) Close() error {
	c.heard()
	return c.Conn.Close()
}

func (c *conn) heard() {
	c.once.Do(func() {
		c.from.mu.Lock()
		defer c.from.mu.Unlock()
		delete(c.from.silent, c)
	})
}
