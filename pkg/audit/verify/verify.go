package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"time"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/object"
)

// Config says what to check, and how strictly.
type Config struct {
	// Bucket holds the anchors; its credentials need to list versions, read objects and read locks. Required.
	Bucket *object.Bucket
	// Database is the connection URL of the reader role. Without it nothing but the bucket is checked, and the report says so.
	Database string

	// Keys are the public keys of the log: an anchor must be signed by one. None: signatures are not checked, and the report says so.
	Keys []anchor.Verifier
	// WitnessKeys are the keys of witnesses of whom each must have cosigned. None: what only a witness finds is not checked, and the report says so.
	WitnessKeys []anchor.Verifier
	// MaxUnwitnessed is how many of the newest anchors may be without a cosignature. Default 0: the newest must have it.
	MaxUnwitnessed uint64

	// Since and Until limit the run to the cadences whose windows meet [Since, Until). Events before are held to the side tree of the anchor before the first.
	Since, Until time.Time
	// CheckRetention and CheckChain: with neither, everything is checked; else only what is named, and the listing, the anchors and their roots in any case.
	CheckRetention, CheckChain bool
	// Tenant limits the walk of chains to one tenant.
	Tenant string
	// AllowEmpty makes a log without events and anchors no finding.
	AllowEmpty bool

	// State is the path of the file in which a run leaves what it saw, so that the next walks only what is new, and notices a rewritten past. Empty: a full run.
	// It is written only by a run that checked everything and found nothing.
	State string

	// Receipts are to be found in the log. EmissionKey is the key of the emission MAC: with it every receipt's MAC is computed again, and the MAC of
	// every event that the database keeps one for. Without it receipts are compared with nothing but the event's presence.
	Receipts    []Receipt
	EmissionKey []byte

	RetentionFloor time.Duration // how long after its writing an object must at least be locked; default 365 days
	MaxLateness    time.Duration // how old the end of the newest anchor's window may be; default two and a half cadences, at least 2 cadences + 30 s
	MaxBeaconLag   time.Duration // how old an event may be that no beacon tells of; default 2 minutes, negative: not checked
	MaxOutboxAge   time.Duration // how long a row may be pending in the outbox without a notice; default 10 minutes
	MaxEventAge    time.Duration // how long before it came into the outbox an event may have occurred; default 24 hours, as the API accepts it
	MaxEventAhead  time.Duration // how long after its recording an event may say it occurred; default 5 minutes, as the API accepts it; a minute is added for the clocks
	ClockTolerance time.Duration // how far the writer's clock may be from the storage's; default 15 minutes, negative: not checked

	MaxFindings int           // how many findings are listed; default 1,000
	Workers     int           // connections that walk chains; default: one for each processor, at most 8
	Fetches     int           // requests to the bucket at a time; default 16
	Patience    time.Duration // how long database or bucket may be silent; default 2 minutes

	Now      func() time.Time // default time.Now
	Progress func(Progress)   // called now and then, from one goroutine at a time; may be nil
}

// Receipt is what an emitter was answered: the event's id and its emission MAC in hexadecimal.
type Receipt struct {
	EventID string `json:"event_id"`
	Receipt string `json:"receipt"`
}

// Progress is how far a run has come.
type Progress struct {
	Step                           string // what is being done
	Anchors, Beacons, Logs, Events uint64
	TotalAnchors, TotalEvents      uint64 // estimates; 0 = unknown
}

// Run verifies. The error says that it could not finish; the report is then of what was done so far. What was found is in the report.
func Run(ctx context.Context, cfg Config) (Report, error) {
	if err := cfg.fill(); err != nil {
		return Report{Findings: []Finding{}, Notices: []string{}, NotChecked: []string{}, Error: err.Error()}, err
	}
	r := &run{cfg: cfg, now: cfg.Now(), found: &collector{limit: cfg.MaxFindings}, tally: &tally{}, buffers: &buffers{}}
	r.latest = math.MaxInt64
	if cfg.ClockTolerance >= 0 {
		r.latest = microsOf(r.now.Add(cfg.ClockTolerance))
	}
	all := !cfg.CheckChain && !cfg.CheckRetention
	r.chains, r.retention = all || cfg.CheckChain, all || cfg.CheckRetention
	r.sayUnchecked()

	report := Report{Bucket: cfg.Bucket.Name(), StartedAt: time.Now().UTC()}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := r.showProgress()
	err := r.verify(ctx, &report)
	stop()
	r.tally.fill(&report.Counts)
	r.found.fill(&report)
	report.FinishedAt = time.Now().UTC()
	if report.Complete = err == nil; err != nil {
		report.Error = err.Error()
	}
	return report, err
}

// fill checks the settings and puts the defaults in.
func (c *Config) fill() error {
	limited := !c.Since.IsZero() || !c.Until.IsZero() || c.Tenant != "" || c.CheckChain || c.CheckRetention
	_, tenant := parseUUID(c.Tenant)
	switch {
	case c.Bucket == nil:
		return errors.New("verify: no bucket")
	case c.Tenant != "" && !tenant:
		return fmt.Errorf("verify: %q is not a tenant id", c.Tenant)
	case !c.Since.IsZero() && !c.Until.IsZero() && !c.Since.Before(c.Until):
		return errors.New("verify: until is not after since")
	case c.State != "" && (limited || c.Database == ""):
		return errors.New("verify: an incremental run checks everything: it cannot be limited, and needs the database")
	case c.Database == "" && (c.CheckChain || !c.CheckRetention):
		return errors.New("verify: chains cannot be checked without the database")
	}
	for _, key := range c.WitnessKeys {
		if !key.Witness() {
			return fmt.Errorf("verify: the key of %s is not a witness's", key.Name())
		}
	}
	c.Tenant = strings.ToLower(c.Tenant)
	c.RetentionFloor = cmp.Or(c.RetentionFloor, 365*24*time.Hour)
	c.MaxBeaconLag = cmp.Or(c.MaxBeaconLag, 2*time.Minute)
	c.MaxOutboxAge = cmp.Or(c.MaxOutboxAge, 10*time.Minute)
	c.MaxEventAge = cmp.Or(c.MaxEventAge, 24*time.Hour)
	c.MaxEventAhead = cmp.Or(c.MaxEventAhead, 5*time.Minute)
	c.ClockTolerance = cmp.Or(c.ClockTolerance, 15*time.Minute)
	c.MaxFindings = cmp.Or(c.MaxFindings, 1000)
	c.Workers = cmp.Or(c.Workers, min(runtime.GOMAXPROCS(0), 8))
	c.Fetches = cmp.Or(c.Fetches, 16)
	c.Patience = cmp.Or(c.Patience, patience)
	if c.Now == nil {
		c.Now = time.Now
	}
	return nil
}

// patience is how long a bucket or a database may be silent, unless Config says otherwise.
const patience = 2 * time.Minute

// sayUnchecked names what the settings leave out.
func (r *run) sayUnchecked() {
	c := r.cfg
	if len(c.Keys) == 0 {
		r.found.unchecked("signatures: no public key of the log was given")
	}
	if len(c.WitnessKeys) == 0 {
		r.found.unchecked("witnesses: no witness key was given, so who has the database, the bucket and the signing key could have rewritten everything")
	}
	if !r.chains {
		r.found.unchecked("chains, beacons, event logs and the outbox: not asked for")
	}
	if !r.retention {
		r.found.unchecked("locks of objects: not asked for")
	}
	if c.ClockTolerance < 0 {
		r.found.unchecked("the writer's clock against the storage's: not asked for")
	}
	if c.MaxBeaconLag < 0 {
		r.found.unchecked("the age of events that no beacon tells of: not asked for")
	}
	if !c.Since.IsZero() {
		r.found.unchecked("texts of events before %s: only that their hashes make the anchored side trees", stamp(c.Since))
	}
	if !c.Until.IsZero() {
		r.found.unchecked("anchors and events after %s, and whether anchors still come", stamp(c.Until))
	}
	if c.Tenant != "" {
		r.found.unchecked("chains of other tenants than %s", c.Tenant)
	}
	if len(c.Receipts) == 0 && r.chains {
		r.found.unchecked("receipts: none were given, so an event that never reached a beacon could be gone without a trace")
	}
}

// progressEvery is how often progress is shown.
const progressEvery = 200 * time.Millisecond

// showProgress calls Config.Progress until stop is called, which waits for the last call.
func (r *run) showProgress() (stop func()) {
	if r.cfg.Progress == nil {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() { // ends with stop, which waits for it
		defer close(ended)
		ticker := time.NewTicker(progressEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				r.cfg.Progress(r.tally.progress())
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
