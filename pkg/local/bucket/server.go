package bucket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/gofiber/fiber/v3"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/s3api"
	"github.com/versity/versitygw/s3api/middlewares"
	"golang.org/x/sync/semaphore"
)

const (
	maxConnections = 1024  // open connections; more are refused
	maxRequests    = 512   // requests at work; more are answered SlowDown, which S3 clients retry
	maxParts       = 10000 // parts of a multipart upload, as in S3
)

// running guards the one thing that a process has only once and a Server needs: its working directory.
var running atomic.Bool

// Server is a running S3 server. Make it with Start, end it with Stop.
type Server struct {
	before string // the working directory to go back to; empty = unknown
	disk   *posix.Posix
	ln     *listener
	app    *fiber.App
	slots  *semaphore.Weighted // one for each request at work; Stop takes them all
	served chan error          // what serving ended with
	stop   sync.Once
	ended  error // the outcome of stop
}

// Start opens (or makes) the directory, brings the buckets up to cfg and listens: when it returns, clients may connect.
// ctx bounds the start only; Stop ends the server. A port in use is an error that wraps syscall.EADDRINUSE.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("bucket: %w", err)
	}
	if !running.CompareAndSwap(false, true) {
		return nil, errors.New("bucket: a server is already running in this process")
	}
	s := &Server{served: make(chan error, 1), slots: semaphore.NewWeighted(maxRequests)}
	if s.before, err = os.Getwd(); err != nil {
		s.before = ""
	}
	if err = s.open(ctx, dir, cfg); err != nil {
		return nil, errors.Join(err, s.close())
	}
	go func() { // ends when Stop closes the listener, and Stop waits for it
		s.served <- s.app.Listener(s.ln, fiber.ListenConfig{DisableStartupMessage: true})
	}()
	return s, nil
}

// Endpoint is the base URL for clients (path-style addressing), without a trailing slash.
func (s *Server) Endpoint() string { return "http://" + s.ln.Addr().String() }

// Stop refuses new requests, waits for those at work and gives the working directory back. A second call returns the
// outcome of the first. When ctx ends before the last request, the error says so and the process keeps the working
// directory, which that request still writes to.
func (s *Server) Stop(ctx context.Context) error {
	s.stop.Do(func() {
		s.ln.stop()
		// First the requests: the shutdown cancels the context of those that are still at work.
		err := s.slots.Acquire(ctx, maxRequests)
		if err == nil {
			err = s.app.ShutdownWithContext(ctx)
		}
		if err != nil {
			s.ended = fmt.Errorf("bucket: stopping: %w", err)
			return
		}
		s.ended = errors.Join(<-s.served, s.close())
	})
	return s.ended
}

func (s *Server) open(ctx context.Context, dir string, cfg Config) (err error) {
	if s.disk, err = openDisk(dir); err != nil {
		return err
	}
	for _, b := range cfg.Buckets {
		if err := ensure(ctx, s.disk, b, cfg); err != nil {
			return err
		}
	}
	if s.app, err = s.newApp(cfg); err != nil {
		return err
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Addr)
	if err != nil {
		return fmt.Errorf("bucket: %w", err)
	}
	s.ln = &listener{Listener: ln, silent: map[*conn]struct{}{}}
	return nil
}

// close releases what open took, except the listener.
func (s *Server) close() error {
	defer running.Store(false)
	if s.disk != nil {
		s.disk.Shutdown()
	}
	if s.before == "" {
		return nil
	}
	return os.Chdir(s.before)
}

// newApp is the gateway without what nobody needs here: only the S3 API runs, no admin API, web page, website host,
// access log, metrics or event sender.
func (s *Server) newApp(cfg Config) (*fiber.App, error) {
	api, err := s3api.New(s.disk, middlewares.RootUserConfig{Access: cfg.RootKey, Secret: cfg.RootSecret},
		cfg.Region, newAccounts(cfg), nil, nil, nil, nil,
		s3api.WithQuiet(), s3api.WithKeepAlive(), s3api.WithMpMaxParts(maxParts),
		s3api.WithConcurrencyLimiter(maxConnections, maxRequests),
		s3api.WithMiddleware("/", func(c fiber.Ctx) error {
			if !s.slots.TryAcquire(1) { // stopping, else the limiter would have refused before
				return c.SendStatus(fiber.StatusServiceUnavailable)
			}
			defer s.slots.Release(1)
			return c.Next()
		}))
	if err != nil {
		return nil, fmt.Errorf("bucket: %w", err)
	}
	// The gateway itself binds to a fixed port only and does not tell when it accepts; our listener does both.
	app, err := hidden[*fiber.App](api, "app")
	if err != nil {
		return nil, err
	}
	return *app, nil
}
