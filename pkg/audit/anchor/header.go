package anchor

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/agentplatform/agentplatform/pkg/audit/canonical"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// Window is a span of time: From belongs to it, To does not.
type Window struct{ From, To ident.Time }

// Header is what an anchor says of a cadence. Its canonical text is a leaf of the log.
type Header struct {
	Backfill      *Window     // windows before Window that no anchor was made for, which this one covers; nil: none
	Cadence       uint64      // length of a regular window in seconds
	Number        uint64      // of the cadence, from 1 without gaps; as cadence_id in the text
	Events        uint64      // total length of all chains
	MerkleRoot    merkle.Hash // over the tenants' heads
	Previous      string      // previous_anchor_sha256: of all bytes of the anchor before it, or Genesis for the first
	ProofRoot     merkle.Hash // over the tenants' lengths, heads and side trees
	RecordedAt    ident.Time  // when the cadence was closed
	TenantCount   uint64
	TenantsSHA256 merkle.Hash // of the text of the list of tenants
	Window        Window
}

// check holds the header to what its members mean. A proof has this from the signature; an anchor has it itself.
func (h Header) check() error {
	switch last := h.Window.From; {
	case h.Number < 1 || h.Number > maxNumber:
		return fmt.Errorf("no cadence has the number %d", h.Number)
	case h.Cadence < 1 || h.Cadence > canonical.MaxInteger:
		return fmt.Errorf("no cadence lasts %d s", h.Cadence)
	case h.Events > canonical.MaxInteger || h.TenantCount > canonical.MaxInteger || h.Events < h.TenantCount:
		return errors.New("fewer events than tenants, or too many")
	case !isLink(h.Previous) || (h.Number == 1) != (h.Previous == Genesis):
		return fmt.Errorf("previous_anchor_sha256 is %s only in the first anchor, and a hash in all others", Genesis)
	case !last.Before(h.Window.To.Time):
		return errors.New("the window is empty")
	case h.Backfill != nil && (!h.Backfill.From.Before(h.Backfill.To.Time) || !h.Backfill.To.Equal(last.Time)):
		return errors.New("the backfill does not end where the window begins")
	}
	times := []ident.Time{h.RecordedAt, h.Window.From, h.Window.To}
	if h.Backfill != nil {
		times = append(times, h.Backfill.From, h.Backfill.To)
	}
	for _, t := range times {
		if !writable(t) {
			return errors.New("a time that has no text: finer than a microsecond, or in no year of four digits")
		}
	}
	return nil
}

func writable(t ident.Time) bool {
	return t.Nanosecond()%1000 == 0 && t.UTC().Year() >= 0 && t.UTC().Year() <= 9999
}

// Append appends the canonical text.
func (h Header) Append(dst []byte) []byte {
	dst = append(dst, '{')
	if h.Backfill != nil {
		dst = append(appendWindow(append(dst, `"backfill":`...), *h.Backfill), ',')
	}
	dst = strconv.AppendUint(append(dst, `"cadence":`...), h.Cadence, 10)
	dst = append(append(dst, `,"cadence_id":"`...), CadenceID(h.Number)...)
	dst = strconv.AppendUint(append(dst, `","events":`...), h.Events, 10)
	dst = appendHash(append(dst, `,"merkle_root":`...), h.MerkleRoot)
	dst = append(append(dst, `,"previous_anchor_sha256":"`...), h.Previous...)
	dst = appendHash(append(dst, `","proof_root":`...), h.ProofRoot)
	dst = appendTime(append(dst, `,"recorded_at":`...), h.RecordedAt)
	dst = strconv.AppendUint(append(dst, `,"schema_version":1,"tenant_count":`...), h.TenantCount, 10)
	dst = appendHash(append(dst, `,"tenants_sha256":`...), h.TenantsSHA256)
	return append(appendWindow(append(dst, `,"window":`...), h.Window), '}')
}

func (c *cursor) header() (h Header) {
	c.literal(`{`)
	h.Backfill = c.backfill()
	c.literal(`"cadence":`)
	h.Cadence = c.uint()
	c.literal(`,"cadence_id":`)
	h.Number = c.cadence()
	c.literal(`,"events":`)
	h.Events = c.uint()
	c.literal(`,"merkle_root":`)
	h.MerkleRoot = c.hash()
	c.literal(`,"previous_anchor_sha256":`)
	h.Previous = c.link()
	c.literal(`,"proof_root":`)
	h.ProofRoot = c.hash()
	c.literal(`,"recorded_at":`)
	h.RecordedAt = c.time()
	c.literal(`,"schema_version":1,"tenant_count":`)
	h.TenantCount = c.uint()
	c.literal(`,"tenants_sha256":`)
	h.TenantsSHA256 = c.hash()
	c.literal(`,"window":`)
	h.Window = c.window()
	c.literal(`}`)
	return h
}

func (c *cursor) backfill() *Window {
	if !c.starts(`"backfill":`) {
		return nil
	}
	c.literal(`"backfill":`)
	w := c.window()
	c.literal(`,`)
	return &w
}

func (c *cursor) window() (w Window) {
	c.literal(`{"from":`)
	w.From = c.time()
	c.literal(`,"to":`)
	w.To = c.time()
	c.literal(`}`)
	return w
}

func appendWindow(dst []byte, w Window) []byte {
	dst = appendTime(append(dst, `{"from":`...), w.From)
	return append(appendTime(append(dst, `,"to":`...), w.To), '}')
}

func appendTime(dst []byte, t ident.Time) []byte {
	dst = append(dst, '"')
	return append(t.UTC().AppendFormat(dst, ident.TimeLayout), '"')
}

// LogLeaf is the leaf in the log of the anchor whose header has this SHA-256.
func LogLeaf(headerSHA256 merkle.Hash) merkle.Hash { return merkle.LeafHash(headerSHA256[:]) }

// Seconds is d as a Header says it.
func Seconds(d time.Duration) uint64 { return uint64(d / time.Second) }
