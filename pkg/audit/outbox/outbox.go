// Package outbox is the only way into the audit log: it records an act's event in the transaction that does the act.
//
// What holds:
//   - Record and RecordOnce need the transaction that Outbox.InTenant runs. An error of theirs must end it: the act is then not done. After the
//     commit InTenant wakes the drainer; nobody has to think of it.
//   - The order of a tenant's events is the order in which their transactions committed: a row takes its position under the tenant's lock, which is
//     held until the commit. So record last; what comes after holds up the tenant's other audited acts.
//   - An event id is taken once, over all tenants and for ever. A row never changes but to be drained.
//   - Waking may fail: a sweep, once a minute, drains what nobody was woken for.
package outbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// Config says how events are sealed and who is told of them.
type Config struct {
	Key  []byte                          // the emission key, which the database must not hold. Required
	Wake func(ctx context.Context) error // starts the drainer, and does not wait for it; nil: nobody is woken
	Log  *slog.Logger                    // told of what did not wake; default slog.Default()
}

// Outbox records events. It is safe for concurrent use.
type Outbox struct{ config Config }

// wakeLimit bounds how long a request waits for the drainer to be told.
const wakeLimit = 5 * time.Second

// New is an Outbox; without a key it panics, for nothing may be recorded without a seal.
func New(c Config) *Outbox {
	if len(c.Key) == 0 {
		panic("outbox: no emission key")
	}
	return &Outbox{c}
}

// InTenant runs run in one transaction of the tenant, as postgres.DB.InTenant does, and wakes the drainer after the commit if it recorded
// something.
func (o *Outbox) InTenant(ctx context.Context, db *postgres.DB, tenantID string, run func(tx pgx.Tx) error) error {
	var recorded bool
	err := db.InTenant(ctx, tenantID, func(tx pgx.Tx) error {
		recorded = false // of the run before, which was rolled back
		return run(&transaction{tx, tenantID, &recorded})
	})
	if err == nil && recorded {
		o.Wake(ctx)
	}
	return err
}

// Wake tells the drainer that there is something to drain. What fails is logged: the sweep will find it.
func (o *Outbox) Wake(ctx context.Context) {
	if o.config.Wake == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wakeLimit) // the act is done, whether or not its caller still waits
	defer cancel()
	if err := o.config.Wake(ctx); err != nil {
		log := o.config.Log
		if log == nil {
			log = slog.Default()
		}
		log.Warn("waking the drainer failed; the sweep will drain", "error", err)
	}
}

// Act does an act in one transaction of the tenant and records what do tells of it: the act is done and recorded, or neither.
func Act[T any](ctx context.Context, o *Outbox, db *postgres.DB, tenantID string, do func(tx pgx.Tx) (T, []audit.Event, error)) (done T, err error) {
	err = o.InTenant(ctx, db, tenantID, func(tx pgx.Tx) error {
		var events []audit.Event
		if done, events, err = do(tx); err != nil {
			return err
		}
		return o.Record(ctx, tx, events...)
	})
	return done, err
}

// transaction is one that InTenant runs, so that it knows whose it is and whether something was recorded.
type transaction struct {
	pgx.Tx
	tenantID string
	recorded *bool
}

// Begin makes a savepoint; what is recorded in it counts as recorded, also if it is rolled back.
func (t *transaction) Begin(ctx context.Context) (pgx.Tx, error) {
	tx, err := t.Tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &transaction{tx, t.tenantID, t.recorded}, nil
}

var errForeign = errors.New("outbox: record only in a transaction that Outbox.InTenant runs, for it wakes the drainer after the commit")

// fill completes the event: the tenant is the transaction's; actor with its type, source and request id are those of the context's caller.
func (t *transaction) fill(ctx context.Context, e audit.Event) audit.Event {
	e.TenantID = cmp.Or(e.TenantID, t.tenantID)
	c, ok := tenant.SignedIn(ctx)
	if !ok {
		return e // no caller: whoever records says it all, and what is missing is refused
	}
	if e.Actor == "" && e.ActorType == "" {
		e.Actor, e.ActorType = c.Actor(), audit.ActorUser
	}
	e.Source = cmp.Or(e.Source, audit.SourceGraphQL)
	e.RequestID = cmp.Or(e.RequestID, c.RequestID)
	return e
}

// sealed is an event as its row holds it.
type sealed struct {
	tenantID, eventID string
	text, mac         []byte
}

func (o *Outbox) seal(e audit.Event) (sealed, error) {
	env, err := e.Envelope()
	if err != nil {
		return sealed{}, err
	}
	text, err := env.Append(nil)
	if err != nil {
		return sealed{}, fmt.Errorf("outbox: %w", err)
	}
	return sealed{env.TenantID, env.EventID, text, audit.MAC(o.config.Key, text)}, nil
}

// lock is the key of a tenant's advisory lock.
func lock(tenantID string) int64 {
	sum := sha256.Sum256([]byte("outbox " + tenantID))
	return int64(binary.BigEndian.Uint64(sum[:]))
}
