package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/spf13/cobra"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/verify"
	"github.com/agentplatform/agentplatform/pkg/object"
)

// place is where the log is.
type place struct {
	bucket, database string
}

func (p *place) flags(c *cobra.Command) {
	c.Flags().StringVar(&p.bucket, "bucket", os.Getenv("ANCHOR_BUCKET"), "`name` of the bucket of the anchors (ANCHOR_BUCKET)")
	p.database = os.Getenv("DATABASE_URL")
}

// open is the bucket, by the standard AWS settings. With an endpoint of one's own, buckets are in the path and not in the host's name.
func (p *place) open(ctx context.Context) (*object.Bucket, error) {
	if p.bucket == "" {
		return nil, errors.New("which bucket? give --bucket or set ANCHOR_BUCKET")
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("the AWS settings: %w", err)
	}
	endpoint := os.Getenv("AWS_ENDPOINT_URL_S3")
	if endpoint == "" {
		endpoint = os.Getenv("AWS_ENDPOINT_URL")
	}
	region := cfg.Region
	switch {
	case region == "" && endpoint == "":
		return nil, errors.New("which region is the bucket in? set AWS_REGION")
	case region == "":
		region = "us-east-1"
	}
	return object.New(object.Config{Region: region, Endpoint: endpoint, PathStyle: endpoint != "", Credentials: cfg.Credentials}).In(p.bucket), nil
}

// trust is whose signatures count.
type trust struct {
	keys    []string
	witness []string
	origin  string
}

func (t *trust) flags(c *cobra.Command) {
	var keys []string
	if key := os.Getenv("ANCHOR_PUBLIC_KEY"); key != "" {
		keys = []string{key}
	}
	c.Flags().StringArrayVar(&t.keys, "public-key", keys, "`key` of the log: a PEM file, a file with a verifier key, or a verifier key; may be repeated (ANCHOR_PUBLIC_KEY)")
	c.Flags().StringVar(&t.origin, "origin", os.Getenv("ANCHOR_ORIGIN"), "`name` of the log, which goes with a PEM key (ANCHOR_ORIGIN); default: the name that is found")
}

func (t *trust) witnessFlag(c *cobra.Command) {
	c.Flags().StringArrayVar(&t.witness, "witness-key", nil, "verifier `key` of a witness, or a file with one; may be repeated, each must have cosigned")
}

// log are the log's keys. origin is asked for the name that the evidence itself gives the log, if a key needs one and none was given.
func (t *trust) log(origin func() (string, error)) ([]anchor.Verifier, error) {
	return verifiers(t.keys, func(text []byte) (anchor.Verifier, error) {
		name := t.origin
		if name == "" && bytes.Contains(text, []byte("-----BEGIN")) {
			var err error
			if name, err = origin(); err != nil {
				return anchor.Verifier{}, err
			}
			if name == "" {
				name = "unnamed" // there is nothing that the key could have signed
			}
		}
		v, err := anchor.ParseVerifier(text, name)
		if err == nil && v.Witness() {
			err = fmt.Errorf("%s is a witness's key, not the log's", v.Name())
		}
		return v, err
	})
}

func (t *trust) witnesses() ([]anchor.Verifier, error) {
	return verifiers(t.witness, func(text []byte) (anchor.Verifier, error) {
		v, err := anchor.ParseVerifier(text, "")
		if err == nil && !v.Witness() {
			err = fmt.Errorf("%s is not a witness's key", v.Name())
		}
		return v, err
	})
}

func verifiers(texts []string, parse func([]byte) (anchor.Verifier, error)) (list []anchor.Verifier, err error) {
	for _, given := range texts {
		text, err := os.ReadFile(given)
		if errors.Is(err, fs.ErrNotExist) && strings.Contains(given, "+") {
			text, err = []byte(given), nil
		}
		if err != nil {
			return nil, fmt.Errorf("key: %w", err)
		}
		v, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", given, err)
		}
		list = append(list, v)
	}
	return list, nil
}

// readReceipts reads a receipt a line: {"event_id":…,"receipt":…}.
func readReceipts(path string) ([]verify.Receipt, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("receipts: %w", err)
	}
	defer file.Close()
	var list []verify.Receipt
	for in := json.NewDecoder(file); ; {
		var r verify.Receipt
		switch err := in.Decode(&r); {
		case errors.Is(err, io.EOF):
			return list, nil
		case err != nil:
			return nil, fmt.Errorf("receipts: %s, receipt %d: %w", path, len(list)+1, err)
		case r.EventID == "" || r.Receipt == "":
			return nil, fmt.Errorf("receipts: %s, receipt %d: event_id and receipt are wanted", path, len(list)+1)
		}
		list = append(list, r)
	}
}

// instant is a flag that takes ISO 8601: a time with its zone, or a date, which begins at midnight UTC.
type instant struct{ time.Time }

func (i *instant) Set(s string) error {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			i.Time = t.UTC()
			return nil
		}
	}
	return errors.New("not a time such as 2026-01-31T09:00:00Z, nor a date")
}

func (i *instant) Type() string { return "time" }

func (i *instant) String() string {
	if i.IsZero() {
		return ""
	}
	return i.Format(time.RFC3339Nano)
}

// days is a flag that takes a duration, of days too.
type days struct{ time.Duration }

func (d *days) Set(s string) error {
	if n, ok := strings.CutSuffix(s, "d"); ok {
		count, err := strconv.ParseUint(n, 10, 16)
		d.Duration = time.Duration(count) * 24 * time.Hour
		return err
	}
	var err error
	d.Duration, err = time.ParseDuration(s)
	if err == nil && d.Duration < 0 {
		err = errors.New("less than nothing")
	}
	return err
}

func (d *days) Type() string { return "duration" }

func (d *days) String() string {
	switch {
	case d.Duration == 0:
		return "0"
	case d.Duration%(24*time.Hour) == 0:
		return fmt.Sprintf("%dd", d.Duration/(24*time.Hour))
	}
	return d.Duration.String()
}
