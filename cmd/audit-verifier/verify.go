package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentplatform/agentplatform/pkg/audit/verify"
)

// verifying are the flags of verify.
type verifying struct {
	place
	trust
	since, until           instant
	retention, chain       bool
	tenant                 string
	json, empty            bool
	incremental            bool
	state                  string
	floor, clock           days
	receipts, emissionKey  string
	maxUnwitnessed         uint64
	maxLateness, beaconLag days
}

func verifyCommand() *cobra.Command {
	v := &verifying{floor: days{365 * 24 * time.Hour}, clock: days{15 * time.Minute}, beaconLag: days{2 * time.Minute}}
	c := &cobra.Command{
		Use:   "verify",
		Short: "Verify anchors, chains, beacons, event logs and locks",
		Long: `Verifies the audit log: the versions and locks of all objects in the bucket, the anchors with their roots
and signatures, every event of every chain, beacons, event logs and the outbox.

With neither --check-chain nor --check-retention everything is checked; with one or both, what they
name, and the listing and the anchors in any case.

The database is read by DATABASE_URL, the role agentplatform_reader suffices. The bucket is read by
the usual AWS settings: AWS_REGION, AWS_PROFILE, AWS_ACCESS_KEY_ID, …, and AWS_ENDPOINT_URL_S3 for
another S3 than Amazon's. The credentials need to list versions, read objects, and read retention.

` + exitCodes,
		Example: `  audit-verifier verify --bucket acme-audit --public-key anchor-key.pub.pem --origin acme/audit
  audit-verifier verify --bucket acme-audit --since 2026-01-01 --json
  audit-verifier verify --bucket acme-audit --incremental --witness-key witness.vkey`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return v.run(c) },
	}
	v.place.flags(c)
	v.trust.flags(c)
	v.witnessFlag(c)
	f := c.Flags()
	f.Var(&v.since, "since", "check the cadences that end after this `time` (ISO 8601) only")
	f.Var(&v.until, "until", "check the cadences that begin before this `time` only")
	f.BoolVar(&v.retention, "check-retention", false, "check the locks of all objects")
	f.BoolVar(&v.chain, "check-chain", false, "check every event, beacons, event logs and the outbox")
	f.StringVar(&v.tenant, "tenant", "", "walk the chain of this tenant (`id`) only")
	f.BoolVar(&v.json, "json", false, "write the report as JSON")
	f.BoolVar(&v.empty, "allow-empty", false, "a log without anchors and events is no finding")
	f.BoolVar(&v.incremental, "incremental", false, "check what is new since the last run that found nothing, and that the past is what it was")
	f.StringVar(&v.state, "state", "", "`file` in which --incremental remembers; default: in the user's cache folder, by bucket")
	f.Var(&v.floor, "retention-floor", "how long after its writing each object must be locked, such as 365d")
	f.StringVar(&v.receipts, "receipts", "", "`file` of receipts, one {\"event_id\":…,\"receipt\":…} a line: each event must be in the log")
	f.StringVar(&v.emissionKey, "emission-key", "", "`file` with the emission key (AUDIT_EMISSION_KEY of the platform): every MAC and receipt is computed again")
	f.Uint64Var(&v.maxUnwitnessed, "max-unwitnessed", 0, "`number` of newest anchors that may be without the witnesses' cosignatures")
	f.Var(&v.maxLateness, "max-lateness", "how old the newest anchor's window may be; default two and a half cadences")
	f.Var(&v.beaconLag, "max-beacon-lag", "how old an event may be that neither anchor nor beacon tells of")
	f.Var(&v.clock, "clock-tolerance", "how far the writer's clock may be from the storage's")
	return c
}

func (v *verifying) run(c *cobra.Command) error {
	ctx := c.Context()
	cfg, err := v.config(ctx)
	if err != nil {
		return err
	}
	progress := newProgress(c.ErrOrStderr(), isTerminal(c.ErrOrStderr()))
	cfg.Progress = progress.show()
	report, err := verify.Run(ctx, cfg)
	progress.end()
	if report.StartedAt.IsZero() {
		return err // the settings contradict each other: there is nothing to report
	}
	if v.json {
		out := json.NewEncoder(c.OutOrStdout())
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		err = errors.Join(err, out.Encode(report))
	} else {
		err = errors.Join(err, writeReport(c.OutOrStdout(), report))
	}
	if err == nil && !report.OK() {
		return errFound
	}
	return err
}

func (v *verifying) config(ctx context.Context) (cfg verify.Config, err error) {
	if !v.floorIsSet() {
		return cfg, errors.New("--retention-floor: no lock at all would satisfy it")
	}
	cfg = verify.Config{Database: v.database, Since: v.since.Time, Until: v.until.Time, CheckRetention: v.retention, CheckChain: v.chain, Tenant: v.tenant, AllowEmpty: v.empty,
		RetentionFloor: v.floor.Duration, MaxLateness: v.maxLateness.Duration, MaxBeaconLag: v.beaconLag.Duration, ClockTolerance: v.clock.Duration, MaxUnwitnessed: v.maxUnwitnessed}
	if cfg.Database == "" && (v.chain || !v.retention) {
		return cfg, errors.New("where is the database? set DATABASE_URL; or give --check-retention alone, which does without")
	}
	if v.chain || !v.retention {
		cfg.Database = v.database
	} else {
		cfg.Database = "" // locks are the bucket's
	}
	if cfg.Bucket, err = v.open(ctx); err != nil {
		return cfg, err
	}
	if cfg.Keys, err = v.log(func() (string, error) { return verify.Origin(ctx, cfg) }); err != nil {
		return cfg, err
	}
	if cfg.WitnessKeys, err = v.witnesses(); err != nil {
		return cfg, err
	}
	if v.receipts != "" {
		if cfg.Receipts, err = readReceipts(v.receipts); err != nil {
			return cfg, err
		}
	}
	if v.emissionKey != "" {
		key, err := os.ReadFile(v.emissionKey)
		if err != nil {
			return cfg, fmt.Errorf("emission key: %w", err)
		}
		if cfg.EmissionKey = bytes.TrimRight(key, "\r\n"); len(cfg.EmissionKey) == 0 {
			return cfg, fmt.Errorf("emission key: %s is empty", v.emissionKey)
		}
	}
	if v.incremental || v.state != "" {
		cfg.State, err = v.stateFile()
	}
	return cfg, err
}

func (v *verifying) floorIsSet() bool { return v.floor.Duration > 0 }

// stateFile is where an incremental run remembers: one file for each bucket of each storage.
func (v *verifying) stateFile() (string, error) {
	if v.state != "" {
		return v.state, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("where to remember? give --state (%w)", err)
	}
	// A bucket's name may be an ARN, or anything: as it is escaped here it is no path.
	sum := sha256.Sum256([]byte(os.Getenv("AWS_ENDPOINT_URL_S3") + "\n" + os.Getenv("AWS_ENDPOINT_URL")))
	return filepath.Join(cache, "agentplatform", "audit-verifier", fmt.Sprintf("%s-%x.json", url.PathEscape(v.bucket), sum[:4])), nil
}
