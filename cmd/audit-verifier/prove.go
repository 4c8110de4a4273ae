package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/proof"
	"github.com/agentplatform/agentplatform/pkg/audit/verify"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

func proveCommand() *cobra.Command {
	var p place
	var to string
	c := &cobra.Command{
		Use:   "prove EVENT",
		Short: "Write a proof file of one event",
		Long: `Writes a file that proves one anchored event to whoever has the log's public key: the event, the hashes that
lead it to a signed checkpoint, and nothing of other tenants. Bucket and database are found as for verify.

Exit codes: 0 the proof is written, 2 it is not: there is no such event, no anchor covers it yet, or it could not be read.`,
		Example: "  audit-verifier prove 0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b -o event.proof.json",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx := c.Context()
			if p.database == "" {
				return errors.New("where is the database? set DATABASE_URL")
			}
			bucket, err := p.open(ctx)
			if err != nil {
				return err
			}
			db, err := postgres.Open(ctx, postgres.Config{URL: p.database, MaxConns: 1, Name: "audit-verifier"})
			if err != nil {
				return err
			}
			defer db.Close()
			file, err := proof.Build(ctx, db, bucket, args[0])
			if err != nil {
				return err
			}
			file = append(file, '\n')
			if to == "" || to == "-" {
				_, err = c.OutOrStdout().Write(file)
				return err
			}
			return os.WriteFile(to, file, 0o644)
		},
	}
	p.flags(c)
	c.Flags().StringVarP(&to, "output", "o", "", "`file` to write; default: standard output")
	return c
}

func checkCommand() *cobra.Command {
	var t trust
	var asJSON bool
	c := &cobra.Command{
		Use:   "check FILE --public-key KEY",
		Short: "Check a proof file, offline",
		Long: `Checks a proof file with nothing but the log's public key: neither network nor database is used. "-" is standard
input. With --witness-key, each of these witnesses must have cosigned.

Exit codes: 0 the event is proven, 1 it is not, 2 it could not be checked.`,
		Example: "  audit-verifier check event.proof.json --public-key anchor-key.pub.pem --origin acme/audit",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			file, err := read(c, args[0])
			if err != nil {
				return err
			}
			keys, err := t.log(func() (string, error) { return originOf(file), nil })
			if err != nil {
				return err
			}
			if len(keys) == 0 {
				return errors.New("whose signature counts? give --public-key")
			}
			witnesses, err := t.witnesses()
			if err != nil {
				return err
			}
			checked, err := anchor.Check(file, append(keys, witnesses...))
			if err == nil {
				err = cosigned(checked, witnesses)
			}
			var refused *anchor.ProofError
			if errors.As(err, &refused) {
				if asJSON {
					return errors.Join(errFound, writeJSON(c, map[string]any{"proven": false, "reason": refused.Reason, "detail": refused.Detail}))
				}
				return errors.Join(errFound, say(c.OutOrStdout(), "NOT PROVEN  %s: %s\n", refused.Reason, refused.Detail))
			}
			if err != nil {
				return err
			}
			return writeChecked(c, checked, asJSON)
		},
	}
	t.flags(c)
	t.witnessFlag(c)
	c.Flags().BoolVar(&asJSON, "json", false, "write what was found as JSON")
	return c
}

// cosigned holds the proof to the witnesses that were asked for.
func cosigned(checked anchor.Checked, witnesses []anchor.Verifier) error {
	for _, w := range witnesses {
		there := false
		for _, s := range checked.Signed {
			there = there || s.Witness && s.Name == w.Name()
		}
		if !there {
			return &anchor.ProofError{Reason: anchor.BadSignature, Detail: "the witness " + w.Name() + " has not cosigned the checkpoint"}
		}
	}
	return nil
}

func writeChecked(c *cobra.Command, p anchor.Checked, asJSON bool) error {
	var signed []string
	for _, s := range p.Signed {
		name := s.Name
		if s.Witness {
			name += " (witness, " + s.Time.UTC().Format("2006-01-02T15:04:05Z") + ")"
		}
		signed = append(signed, name)
	}
	if asJSON {
		return writeJSON(c, map[string]any{"proven": true, "event_id": p.EventID, "tenant_id": p.TenantID, "event_type": p.Type, "event_hash": fmt.Sprintf("%x", p.EventHash),
			"position": p.Position, "cadence_id": anchor.CadenceID(p.Header.Number), "recorded_at": p.Header.RecordedAt, "origin": p.Log.Origin, "signed_by": signed, "event": json.RawMessage(p.Event)})
	}
	return say(c.OutOrStdout(), `PROVEN  event %s

  %s of tenant %s, position %d in its chain
  in the log %s by %s, %s
  signed by %s

%s
`, p.EventID, p.Type, p.TenantID, p.Position, p.Log.Origin, p.Header.RecordedAt, anchor.CadenceID(p.Header.Number), strings.Join(signed, ", "), whole(p.Event))
}

func writeJSON(c *cobra.Command, v any) error {
	out := json.NewEncoder(c.OutOrStdout())
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(v)
}

// originOf is the name that a proof file gives the log.
func originOf(file []byte) string {
	var p struct {
		Checkpoint string `json:"checkpoint"`
	}
	if json.Unmarshal(file, &p) != nil {
		return ""
	}
	c, err := anchor.ParseCheckpoint(p.Checkpoint)
	if err != nil {
		return ""
	}
	return c.Origin
}

func read(c *cobra.Command, path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(c.InOrStdin())
	}
	return os.ReadFile(path)
}

func exportCommand() *cobra.Command {
	var t trust
	var manifest string
	var asJSON bool
	c := &cobra.Command{
		Use:   "export FILE --public-key KEY",
		Short: "Check an exported file against its signed manifest, offline",
		Long: `Checks an exported file with nothing but its manifest and the log's public key: signature, length, hash and
number of rows. Neither network nor database is used.

` + exitCodes,
		Example: "  audit-verifier export export.csv --public-key anchor-key.pub.pem",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if manifest == "" {
				manifest = anchor.ManifestKey(args[0])
			}
			told, err := os.ReadFile(manifest)
			if err != nil {
				return fmt.Errorf("the manifest: %w", err)
			}
			keys, err := t.log(func() (string, error) { return "export", nil }) // the signature of a manifest bears no name
			if err != nil {
				return err
			}
			if len(keys) == 0 {
				return errors.New("whose signature counts? give --public-key")
			}
			file, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			report, findings, err := verify.CheckExport(file, told, keys)
			if err != nil {
				return err
			}
			return writeExport(c, report, findings, asJSON)
		},
	}
	t.flags(c)
	c.Flags().StringVar(&manifest, "manifest", "", "`file` with the manifest; default: FILE.manifest.json")
	c.Flags().BoolVar(&asJSON, "json", false, "write what was found as JSON")
	return c
}

func writeExport(c *cobra.Command, r verify.ExportReport, findings []verify.Finding, asJSON bool) error {
	if asJSON {
		if findings == nil {
			findings = []verify.Finding{}
		}
		if err := writeJSON(c, map[string]any{"file": r, "findings": findings}); err != nil {
			return err
		}
	} else {
		title := "VERIFIED"
		if len(findings) > 0 {
			title = "NOT VERIFIED"
		}
		out := c.OutOrStdout()
		err := say(out, "%s  %s, %d bytes, SHA-256 %s\n", title, count(r.Rows, "row"), r.Bytes, r.SHA256)
		if len(findings) == 0 {
			err = errors.Join(err, say(out, "\n  job %s, made at %s, filter %s\n", r.Manifest.JobID, r.Manifest.CreatedAt, r.Manifest.Filter))
		}
		for _, f := range findings {
			err = errors.Join(err, say(out, "\n  %s: %s\n", f.Class, f.Detail))
		}
		if err != nil {
			return err
		}
	}
	if len(findings) > 0 {
		return errFound
	}
	return nil
}
