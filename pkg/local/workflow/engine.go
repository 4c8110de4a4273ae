// Package workflow is package workflow's engine on one machine: runs of state machines in the platform's own PostgreSQL, and what takes them from state
// to state by package asl.
//
// What holds:
//   - Runs survive everything that the database survives. They are in a schema of this package's own, local_workflow, which Open makes and brings up to
//     date: a deployment in the cloud has no such tables.
//   - A run is a tree of branches: the run itself, the branches of a Parallel, the items of a Map. A branch is a row with its state, that state's raw
//     input, and what it waits for. What comes of a state is worked out by functions without effects (advance.go), and written with the steps that it
//     made in one transaction (settle): both, or neither. States that wait for nothing outside are passed through in one transaction, up to so many.
//   - A branch is claimed before it is worked on, and what is written is written by who has the claim: each transition is made once, also when several
//     engines run on one database. A claim is its engine's for as long as the engine's connection is there. What a killed process had claimed goes on when
//     the next engine runs. A function that was being called then is called again, with the same token: functions are idempotent.
//   - What comes from outside (the answer to a token, another branch's failure, a stop) takes the branch away from whoever works on it, so the first
//     answer counts, also while the function that handed out the token still runs.
//   - A transition's commit does not wait for the disk: a power cut may take the last moment's back, and they are made again. A start, a stop, an
//     answer, and a run's end do wait; whatever was committed before them is on the disk with them.
//   - An engine that has nothing to do sleeps until the next branch wants to be looked at. It looks once a minute besides.
//   - Runs are deleted 90 days after their end. A run may have MaxSteps steps, and MaxBytes of data in them,
//     so that one that goes round in circles ends.
package workflow

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// MaxSteps is how many steps a run may have: as many as Step Functions has events.
const MaxSteps = 25_000

// MaxBytes is how large the data of a run's steps may be together: a definition is anybody's, and what a run has kept stays for as long as it does.
const MaxBytes = 256 << 20

// keep is how long a run is there after its end.
const keep = 90 * 24 * time.Hour

// Config says where the runs are and what their tasks call.
type Config struct {
	URL string // of a PostgreSQL database, as a role that may create a schema in it. Required
	// Functions calls a function by its name, without Prefix, and waits for its answer. An error that is, or wraps, a messages.InvokeResponse_Error is
	// the function's own; any other is the platform's. Required to Run.
	Functions func(ctx context.Context, function string, payload []byte) ([]byte, error)
	// Region, Account and Prefix are those of ARNs, as in the cloud: arn:aws:states:<region>:<account>:execution:<prefix><machine>:<name> is a run's, and
	// arn:aws:lambda:<region>:<account>:function:<prefix><name> a function's. Default "local", "000000000000" and "".
	Region, Account, Prefix string
	// Workers are the branches that are worked on at a time, those whose function is being called included. Default 64.
	Workers int
	Now     func() time.Time // tests: the time, which they move on; Look tells the engine. Default time.Now
	// Ended is told of each run that has ended, in any way, with the machine's name; again after an error, and after a process that was killed in the
	// middle. nil: nobody is.
	Ended func(ctx context.Context, run workflow.Run, machine string) error
	// Signal is called at each point at which a process may be killed, with the point's name. Tests: nil does nothing.
	Signal func(point string)
}

// Engine is a workflow.Engine. Close it after the last Run has returned.
type Engine struct {
	config   Config
	db       *postgres.DB
	secret   []byte        // what tokens are signed with
	room     int64         // MaxBytes; tests: less
	look     chan struct{} // something may be due earlier than thought
	running  atomic.Int32  // Runs
	programs sync.Map      // definitions that were parsed, by their id: *program
	parsed   atomic.Int32  // how many
	ended    chan struct{} // a run has ended
}

var _ workflow.Engine = (*Engine)(nil)

// Open reaches the database and prepares the tables. Run does the work; without it runs may be started, and wait.
func Open(ctx context.Context, config Config) (*Engine, error) {
	config.Region, config.Account = cmp.Or(config.Region, "local"), cmp.Or(config.Account, "000000000000")
	config.Workers = cmp.Or(config.Workers, 64)
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Signal == nil {
		config.Signal = func(string) {}
	}
	db, err := postgres.Open(ctx, postgres.Config{URL: config.URL, MaxConns: 8, Name: "agentplatform workflow"})
	if err != nil {
		return nil, err
	}
	e := &Engine{config: config, db: db, room: MaxBytes, look: make(chan struct{}, 1), ended: make(chan struct{}, 1)}
	if err := db.Unbound(ctx, func(tx pgx.Tx) (err error) {
		e.secret, err = prepare(ctx, tx)
		return err
	}); err != nil {
		db.Close()
		return nil, fmt.Errorf("the workflow engine's tables: %w", err)
	}
	return e, nil
}

// Close closes the connections.
func (e *Engine) Close() { e.db.Close() }

// Look makes Run look at the time and at what is due.
func (e *Engine) Look() { signal(e.look) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it will
	}
}

// now is the time as the database keeps it.
func (e *Engine) now() time.Time { return e.config.Now().UTC().Truncate(time.Microsecond) }
