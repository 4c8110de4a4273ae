package anchor

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/agentplatform/agentplatform/pkg/audit/canonical"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
)

// Reason is why a proof file does not prove its event. Both checkers, this one and docs/check-proof.mjs, say the same.
type Reason string

// The reasons, in the order in which the checks are made.
const (
	BadForm      Reason = "form"       // not a proof file, byte for byte: unknown members, other spellings, impossible numbers
	BadEvent     Reason = "event"      // the event is an envelope of no tenant
	BadHead      Reason = "head"       // the event ends the chain, but its hash is not the anchored head's
	BadProofRoot Reason = "proof_root" // event, position and paths do not lead to the header's proof_root
	BadLogRoot   Reason = "log_root"   // the header is not the last leaf of the checkpoint's log
	BadSignature Reason = "signature"  // no trusted key signed the checkpoint, or a trusted key's signature is wrong
)

// ProofError is a proof file that proves nothing.
type ProofError struct {
	Reason Reason
	Detail string
}

func (e *ProofError) Error() string { return "proof: " + string(e.Reason) + ": " + e.Detail }

// Checked is what a proof file proves: that the event was at its position in its tenant's chain when the anchor was
// made, and who signed that.
type Checked struct {
	Proof
	EventID, TenantID, Type string // members event_id, tenant_id and event_type of the event
	EventHash               merkle.Hash
	Log                     Checkpoint
	Signed                  []Signed // in the order of the note; at least the log
}

// Checker checks proof files against trusted keys, and needs nothing else. It is safe for concurrent use.
type Checker struct {
	keys []Verifier
	last atomic.Pointer[opened] // proofs of one anchor share its note: verified once
}

type opened struct {
	note   string
	signed []Signed
}

// NewChecker trusts keys: those of the log, at least one, and those of witnesses, whose lines are verified and
// reported. Whether a witness must have signed is the caller's to say.
func NewChecker(keys []Verifier) *Checker { return &Checker{keys: keys} }

// Check computes everything anew: event hash, side tree root, proof_root, header, log root; then it verifies the
// checkpoint. The error is a *ProofError.
func Check(file []byte, keys []Verifier) (Checked, error) { return NewChecker(keys).Check(file) }

// Check is as the function of this name.
func (c *Checker) Check(file []byte) (Checked, error) {
	p, err := parseProof(file)
	if err != nil {
		return Checked{}, &ProofError{BadForm, err.Error()}
	}
	r := Checked{Proof: p, EventHash: EventHash(p.Event, p.Prev)}
	if err := r.readEvent(); err != nil {
		return Checked{}, &ProofError{BadEvent, err.Error()}
	}
	if p.Position == p.Length && r.EventHash != p.Head {
		return Checked{}, &ProofError{BadHead, "the last event of the chain is not its head"}
	}
	tree, err := merkle.RootFromInclusion(EventLeaf(r.EventHash), p.Position-1, p.Length, p.EventPath)
	if err != nil {
		return Checked{}, &ProofError{BadForm, err.Error()}
	}
	leaf, err := Tenant{r.TenantID, p.Length, p.Head, tree}.ProofLeaf()
	if err == nil {
		err = merkle.VerifyInclusion(leaf, p.Index, p.Header.TenantCount, p.TenantPath, p.Header.ProofRoot)
	}
	if err != nil {
		return Checked{}, &ProofError{BadProofRoot, "event, position and paths do not lead to the header's proof_root"}
	}
	r.Log, err = ParseCheckpoint(p.Checkpoint)
	if err != nil {
		return Checked{}, &ProofError{BadForm, err.Error()}
	}
	header := sha256.Sum256(p.Header.Append(make([]byte, 0, 1<<10)))
	if merkle.VerifyInclusion(LogLeaf(header), r.Log.Size-1, r.Log.Size, p.LogPath, r.Log.Root) != nil {
		return Checked{}, &ProofError{BadLogRoot, "the header does not lead to the checkpoint's root"}
	}
	if r.Signed, err = c.open(p.Checkpoint); err != nil {
		return Checked{}, &ProofError{BadSignature, err.Error()}
	}
	return r, nil
}

func (c *Checker) open(note string) ([]Signed, error) {
	if last := c.last.Load(); last != nil && last.note == note {
		return last.signed, nil
	}
	_, signed, err := OpenCheckpoint(note, c.keys)
	if err != nil {
		return nil, err
	}
	c.last.Store(&opened{note, signed})
	return signed, nil
}

// readEvent takes what identifies the event from its envelope.
func (r *Checked) readEvent() error {
	for name, value := range canonical.Members(r.Event) {
		var to *string
		switch string(name) {
		case "event_id":
			to = &r.EventID
		case "event_type":
			to = &r.Type
		case "tenant_id":
			to = &r.TenantID
		default:
			continue
		}
		text, ok := canonical.Unquote(value)
		if !ok {
			return fmt.Errorf("%s is not text", name)
		}
		*to = text
	}
	if r.EventID == "" || r.Type == "" {
		return errors.New("no event_id or no event_type")
	}
	_, err := tenantBytes(r.TenantID)
	return err
}
