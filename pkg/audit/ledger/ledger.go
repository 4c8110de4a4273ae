package ledger

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/metric"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/sign"
)

var (
	// ErrRollback is a database that lacks what the bucket proves to have been there. Nothing is written until it is repaired.
	ErrRollback = errors.New("ledger: the database is older than the write-once bucket")
	// ErrForeign is an object in the bucket that this ledger would not have written.
	ErrForeign = errors.New("ledger: the write-once bucket holds an object that is not this ledger's")
	// ErrDamaged is a chain whose rows or head contradict each other.
	ErrDamaged = errors.New("ledger: a chain is damaged")
)

// Config says where the ledger is and how it is kept.
type Config struct {
	DB     *postgres.DB   // as agentplatform_ledger; one connection is enough. Required
	Bucket *object.Bucket // the write-once one: object lock, versions. Required
	Signer sign.Signer    // of beacons and checkpoints. Required but for Watch
	Key    []byte         // emission key, which MACs are checked with. Required for Drain
	Origin string         // names the anchor log in its checkpoints. Required but for Watch

	Interval    time.Duration // of cadences, whole seconds; default 15 minutes
	Retention   time.Duration // how long objects are locked; default 400 days
	WitnessURL  string        // of a C2SP tlog-witness; empty: none
	WitnessKey  string        // its verifier key
	Batch       int           // events in a transaction; default 1,000
	BeaconEvery time.Duration // between two beacons, while there is something to tell; default 5 s, negative: at once
	Margin      time.Duration // Drain begins nothing this long before its context's deadline; default 5 s
	Uploads     int           // PUTs at the same time; default 8
	PutTimeout  time.Duration // of one exchange with the bucket or the witness, and for each MiB of it; default 10 s

	Now    func() time.Time   // default time.Now
	Signal func(point string) // tests: told of every point at which a crash may matter
}

// Ledger is safe for concurrent use.
type Ledger struct {
	Config
	draining sync.Mutex
	again    atomic.Bool // Drain was called while it ran
}

// New makes a Ledger. It does no I/O.
func New(c Config) *Ledger {
	c.Interval = or(c.Interval, 15*time.Minute)
	c.Retention = or(c.Retention, 400*24*time.Hour)
	c.Batch = or(c.Batch, 1000)
	c.BeaconEvery = or(c.BeaconEvery, 5*time.Second)
	c.Margin = or(c.Margin, 5*time.Second)
	c.Uploads = or(c.Uploads, 8)
	c.PutTimeout = or(c.PutTimeout, 10*time.Second)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Signal == nil {
		c.Signal = func(string) {}
	}
	return &Ledger{Config: c}
}

func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// Advisory locks, all of one transaction. Who takes both takes them in this order.
const (
	writerLock  = audit.WriterLock     // whoever chains events or writes beacons
	cadenceLock = audit.WriterLock + 1 // whoever chains events, against whoever closes the cadence
)

// now is the clock, cut to what is stored.
func (l *Ledger) now() time.Time { return l.Now().UTC().Truncate(time.Microsecond) }

func (l *Ledger) retainUntil() time.Time { return l.now().Add(l.Retention) }

// key is the log's public key, under the log's name.
func (l *Ledger) key(ctx context.Context) ([]anchor.Verifier, error) {
	public, err := l.Signer.Public(ctx)
	if err != nil {
		return nil, err
	}
	v, err := anchor.LogVerifier(l.Origin, public)
	return []anchor.Verifier{v}, err
}

func instant(t time.Time) ident.Time { return ident.Time{Time: t.UTC()} }

// figure tells of one figure; seconds have a unit of their own.
func figure(ctx context.Context, name string, unit metric.Unit, value float64) {
	metric.Emit(ctx, metric.Event{Line: "metric", Sets: []metric.Set{{Figures: []metric.Figure{{Name: name, Unit: unit, Value: value}}}}})
}

// alarm is something that a person must look at.
func alarm(ctx context.Context, message string, more ...any) {
	slog.ErrorContext(ctx, "audit alarm: "+message, more...)
}

// alarmed tells of an error that a person must look at, whoever meets it.
func alarmed(ctx context.Context, err error) error {
	if errors.Is(err, ErrRollback) || errors.Is(err, ErrForeign) || errors.Is(err, ErrDamaged) {
		alarm(ctx, "the ledger has stopped", "error", err)
	}
	return err
}
