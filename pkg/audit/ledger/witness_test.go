package ledger_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/ledger"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
)

// witness signs each checkpoint that continues the last one that it signed.
type witness struct {
	*httptest.Server
	verifier anchor.Verifier
	size     uint64
	root     merkle.Hash
	ill      bool // answers nothing of use
}

func newWitness(t *testing.T) *witness {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	w := &witness{}
	w.verifier, err = anchor.WitnessVerifier("witness.test", public)
	require.NoError(t, err)
	w.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if w.ill {
			out.WriteHeader(http.StatusBadGateway)
			return
		}
		body, _ := io.ReadAll(r.Body)
		head, note, _ := strings.Cut(string(body), "\n\n")
		lines := strings.Split(head, "\n")
		old, _ := strconv.ParseUint(strings.TrimPrefix(lines[0], "old "), 10, 64)
		c, err := anchor.ParseCheckpoint(note)
		var proof []merkle.Hash
		for _, line := range lines[1:] {
			h, _ := base64.StdEncoding.DecodeString(line)
			proof = append(proof, merkle.Hash(h))
		}
		switch {
		case err != nil:
			out.WriteHeader(http.StatusBadRequest)
		case old != w.size:
			out.Header().Set("Content-Type", "text/x.tlog.size")
			out.WriteHeader(http.StatusConflict)
			fmt.Fprintln(out, w.size)
		case old > 0 && merkle.VerifyConsistency(old, c.Size, w.root, c.Root, proof) != nil:
			out.WriteHeader(http.StatusUnprocessableEntity)
		default:
			w.size, w.root = c.Size, c.Root
			id := sha256.Sum256(append([]byte("witness.test\n\x04"), public...))
			at := time.Now().Unix()
			sig := append(binary.BigEndian.AppendUint64(id[:4:4], uint64(at)), ed25519.Sign(private, []byte(fmt.Sprintf("cosignature/v1\ntime %d\n%s", at, c.Body())))...)
			fmt.Fprintf(out, "— witness.test %s\n", base64.StdEncoding.EncodeToString(sig))
		}
	}))
	t.Cleanup(w.Close)
	return w
}

// A witness signs along; without it anchors go out all the same, and when it is back it is shown all that it missed.
func TestWitness(t *testing.T) {
	w, other := newWorld(t, 1), newWitness(t)
	with := func(c *ledger.Config) { c.WitnessURL, c.WitnessKey = other.URL, other.verifier.String() }
	cosigned := func(n uint64) bool {
		_, signed, err := anchor.OpenCheckpoint(w.anchorOf(n).Checkpoint, append(w.verifiers(), other.verifier))
		require.NoError(t, err)
		require.Equal(t, len(signed) == 2, ask[bool](w, `select witnessed from audit_anchors where number = $1`, n))
		return len(signed) == 2
	}
	for n := uint64(1); n <= 7; n++ {
		other.ill = n == 3 || n == 4
		w.recordAll(1)
		w.drain()
		w.pass(interval)
		require.NoError(t, w.ledger(with).PublishAnchor(t.Context()))
		require.Equal(t, !other.ill, cosigned(n), "anchor %d", n)
		if n == 5 {
			w.super(`update audit_ledger set witnessed_size = 2`) // as after a crash: the witness knows better
		}
	}
	w.consistent()

	// One that another run had cosigned, and put before it died.
	w.pass(interval)
	require.Equal(t, "anchor: closed", w.killAt("anchor", "anchor: closed"))
	earlier := w.db.Clone(t)
	w.open(w.db)
	require.NoError(t, w.ledger(with).PublishAnchor(t.Context()))
	w.open(earlier)
	require.NoError(t, w.ledger(with).PublishAnchor(t.Context()))
	require.True(t, cosigned(8))
	w.consistent()

	// A witness that has seen another history: the anchor goes out, and a person is told.
	lines := captured(t)
	other.root[0] ^= 1
	w.pass(interval)
	require.NoError(t, w.ledger(with).PublishAnchor(t.Context()))
	require.False(t, cosigned(9))
	require.Contains(t, lines(), "the witness has signed another history")
}
