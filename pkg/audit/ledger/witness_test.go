package ledger_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/ledger"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
	"github.com/agentplatform/agentplatform/pkg/audit/witness/witnesstest"
)

// other is a witness, run by somebody else.
type other struct {
	*httptest.Server
	*witnesstest.Witness
	ill bool // answers nothing of use
}

func newOther(t *testing.T, log anchor.Verifier) *other {
	t.Helper()
	strict, err := witnesstest.New("witness.test", log)
	require.NoError(t, err)
	o := &other{Witness: strict}
	o.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if o.ill {
			out.WriteHeader(http.StatusBadGateway)
			return
		}
		strict.ServeHTTP(out, r)
	}))
	t.Cleanup(o.Close)
	return o
}

func (o *other) config(c *ledger.Config) { c.WitnessURL, c.WitnessKey = o.URL, o.Key().String() }

// A witness signs along; without it anchors go out all the same, and when it is back it is shown all that it missed.
func TestWitness(t *testing.T) {
	w := newWorld(t, 1)
	other := newOther(t, w.verifiers()[0])
	with := other.config
	cosigned := func(n uint64) bool {
		_, signed, err := anchor.OpenCheckpoint(w.anchorOf(n).Checkpoint, append(w.verifiers(), other.Key()))
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
	lines, forked := captured(t), newOther(t, w.verifiers()[0])
	note, err := anchor.SignCheckpoint(t.Context(), anchor.Checkpoint{Origin: origin, Size: 8, Root: merkle.LeafHash([]byte("another history"))}, w.signer)
	require.NoError(t, err)
	res, err := http.Post(forked.URL+"/add-checkpoint", "text/plain", strings.NewReader("old 0\n\n"+note))
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.EqualValues(t, 8, forked.Size(origin))
	w.pass(interval)
	require.NoError(t, w.ledger(forked.config).PublishAnchor(t.Context()))
	require.False(t, cosigned(9))
	require.Contains(t, lines(), "the witness has signed another history")
}
