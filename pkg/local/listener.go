package local

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

// listener is one port on the loopback address.
type listener struct {
	net.Listener
	server      *http.Server    // nil until it serves
	certificate tls.Certificate // of the TLS port
}

// newListener takes a port; variable names the setting that chooses it.
func newListener(port int, variable string) (*listener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("port %d is in use; stop what uses it, or choose another one: %s=0 takes any free port", port, variable)
	}
	if err != nil {
		return nil, fmt.Errorf("port %d cannot be used: %w; choose another one with %s", port, err, variable)
	}
	return &listener{Listener: l}, nil
}

func (l *listener) url(scheme string) string { return scheme + "://" + l.Addr().String() }

// serve answers requests until close; what ends it early goes to failed.
func (l *listener) serve(h http.Handler, failed chan<- error) {
	l.server = &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug)}
	inner := l.Listener
	if l.certificate.Certificate != nil {
		l.server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{l.certificate}, MinVersion: tls.VersionTLS12}
		inner = tls.NewListener(inner, l.server.TLSConfig)
	}
	go func() {
		if err := l.server.Serve(inner); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	}()
}

// close lets running requests end.
func (l *listener) close(ctx context.Context) error {
	if l.server == nil {
		return l.Listener.Close()
	}
	return errors.Join(l.server.Shutdown(ctx), l.server.Close())
}
