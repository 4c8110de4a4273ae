package bench

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// superuser is a pool on the platform's own database that no policy binds, for floors and for filling tables.
func (w *world) superuser() (*pgxpool.Pool, error) {
	u, err := w.superuserURL()
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(u.String())
	if err != nil {
		return nil, err
	}
	config.MaxConns = 16
	return pgxpool.NewWithConfig(context.Background(), config)
}

// app is the database as the platform's functions have it.
func (w *world) app() (*postgres.DB, error) {
	u, err := w.superuserURL()
	if err != nil {
		return nil, err
	}
	q := u.Query()
	q.Set("role", "agentplatform_app")
	u.RawQuery = q.Encode()
	return postgres.Open(context.Background(), postgres.Config{URL: u.String(), MaxConns: 8, Name: "bench"})
}

func (w *world) superuserURL() (*url.URL, error) {
	if given := os.Getenv("BENCH_DATABASE_URL"); given != "" {
		return url.Parse(given)
	}
	u, err := url.Parse(w.platform.Outputs.DatabaseReaderURL)
	if err != nil {
		return nil, err
	}
	secrets, err := os.ReadFile(filepath.Join(w.dir, "secrets.env"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(secrets)) {
		if password, ok := strings.CutPrefix(strings.TrimSpace(line), "POSTGRES_PASSWORD="); ok {
			u.User = url.UserPassword("postgres", password)
			return u, nil
		}
	}
	return nil, fmt.Errorf("secrets.env has no POSTGRES_PASSWORD")
}

// settle gives the planner what it has in any deployment that is older than a minute: some rows, and statistics of them.
func (w *world) settle(b *testing.B) {
	b.Helper()
	pool, err := w.superuser()
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	for range 200 {
		thread, err := w.openThread()
		if err != nil {
			b.Fatal(err)
		}
		if err := w.query(request(`mutation ($t: ID!) { sendMessage(input: {threadId: $t, body: "Hello"}) { id } }`, map[string]any{"t": thread}), nil); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := pool.Exec(context.Background(), `analyze`); err != nil {
		b.Fatal(err)
	}
}
