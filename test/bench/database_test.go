package bench

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// superuser is a pool on the platform's own database that no policy binds, for floors and for filling tables.
func (w *world) superuser() (*pgxpool.Pool, error) {
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
			config, err := pgxpool.ParseConfig(u.String())
			if err != nil {
				return nil, err
			}
			config.MaxConns = 16
			return pgxpool.NewWithConfig(context.Background(), config)
		}
	}
	return nil, fmt.Errorf("secrets.env has no POSTGRES_PASSWORD")
}
