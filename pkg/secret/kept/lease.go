package kept

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// Lease is the right to change a row's value, for a minute: one has it at a time. Where it is not released it ends by itself. Its end is its name too: whoever
// takes one that ran out has a later one.
type Lease struct {
	Version int // of the value kept last

	secrets       *Secrets
	tenantID, row string
	until         time.Time
}

// errLost says that somebody else has the lease now.
var errLost = errors.New("the lease ran out, and somebody else has it")

func scan(row pgx.CollectableRow) (l Lease, err error) {
	err = row.Scan(&l.until, &l.Version)
	return l, err
}

// lease takes the lease; nil: somebody else has it.
func (s *Secrets) lease(ctx context.Context, tenantID, row string) (mine *Lease, err error) {
	err = s.db.InTenant(ctx, tenantID, func(tx pgx.Tx) error {
		mine = nil
		free, err := postgres.One(ctx, tx, s.at.Noun, pgx.RowTo[bool], `select secret_lease is null or secret_lease < clock_timestamp() from `+s.at.Table+` where id = $1 for update`, row)
		if err != nil || !free {
			return err
		}
		l, err := postgres.One(ctx, tx, s.at.Noun, scan, `update `+s.at.Table+` set secret_lease = clock_timestamp() + interval '1 minute' where id = $1
			returning secret_lease, secret_version`, row)
		l.secrets, l.tenantID, l.row = s, tenantID, row
		mine = &l
		return err
	})
	return mine, err
}

// Hold takes the lease, waiting for whoever has it.
func (s *Secrets) Hold(ctx context.Context, tenantID, row string) (*Lease, error) {
	within, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		mine, err := s.lease(within, tenantID, row)
		if mine != nil || err != nil {
			return mine, err
		}
		if wait(within, pause) != nil {
			return nil, fault.Invalid("the token of the %s is being renewed: try again in a minute", s.at.Noun)
		}
	}
}

// Put keeps a value, if the lease is still this one: it has its whole time again before the store is asked. The row is the caller's to write.
func (l *Lease) Put(ctx context.Context, v Secret) error {
	err := l.secrets.db.InTenant(ctx, l.tenantID, func(tx pgx.Tx) error {
		again, err := postgres.One(ctx, tx, l.secrets.at.Noun, scan, `update `+l.secrets.at.Table+` set secret_lease = clock_timestamp() + interval '1 minute'
			where id = $1 and secret_lease = $2 returning secret_lease, secret_version`, l.row, l.until)
		if fault.IsMissing(err) {
			return errLost
		}
		if err == nil {
			l.until = again.until
		}
		return err
	})
	if err != nil {
		return err
	}
	return l.secrets.Put(ctx, l.tenantID, l.row, v)
}

// Until is what the column secret_lease holds while the lease is this one.
func (l *Lease) Until() time.Time { return l.until }

// Release gives the lease back, if it is still this one, and says which value is the last.
func (l *Lease) Release(ctx context.Context, version int) error {
	var b pgx.Batch
	b.Queue(`update `+l.secrets.at.Table+` set secret_lease = nullif(secret_lease, $3), secret_version = greatest(secret_version, $2) where id = $1`, l.row, version, l.until)
	return l.secrets.db.Once(context.WithoutCancel(ctx), l.tenantID, &b)
}
