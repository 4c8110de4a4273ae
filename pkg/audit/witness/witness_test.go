package witness_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
	"github.com/agentplatform/agentplatform/pkg/audit/witness"
	"github.com/agentplatform/agentplatform/pkg/audit/witness/witnesstest"
	"github.com/agentplatform/agentplatform/pkg/sign"
	"github.com/stretchr/testify/require"
)

const origin = "log.example/audit"

// history is a log: its leaves, and who signs for it.
type history struct {
	t      *testing.T
	key    sign.Signer
	leaves []merkle.Hash
	proofs []uint64 // sizes that a proof was made from
}

func newHistory(t *testing.T) *history {
	t.Helper()
	key, err := sign.File(filepath.Join(t.TempDir(), "key.pem"))
	require.NoError(t, err)
	h := &history{t: t, key: key}
	for i := range 200 {
		h.leaves = append(h.leaves, merkle.LeafHash(fmt.Append(nil, i)))
	}
	return h
}

func (h *history) note(size int) string {
	note, err := anchor.SignCheckpoint(h.t.Context(), anchor.Checkpoint{Origin: origin, Size: uint64(size), Root: merkle.Root(h.leaves[:size])}, h.key)
	require.NoError(h.t, err)
	return note
}

func (h *history) verifier() anchor.Verifier {
	public, err := h.key.Public(h.t.Context())
	require.NoError(h.t, err)
	v, err := anchor.LogVerifier(origin, public)
	require.NoError(h.t, err)
	return v
}

// prove makes proofs for the note of size.
func (h *history) prove(size int) func(context.Context, uint64) ([]merkle.Hash, error) {
	return func(_ context.Context, old uint64) ([]merkle.Hash, error) {
		h.proofs = append(h.proofs, old)
		return merkle.Consistency(h.leaves[:size], old), nil
	}
}

func (h *history) cosign(w witness.Witness, size int, old uint64) (string, error) {
	h.t.Helper()
	note := h.note(size)
	lines, err := w.Cosign(h.t.Context(), note, old, h.prove(size))
	if err == nil {
		_, by, err := anchor.OpenCheckpoint(note+lines, append([]anchor.Verifier{h.verifier()}, w.Keys...))
		require.NoError(h.t, err)
		require.Len(h.t, by, 2)
		require.True(h.t, by[1].Witness)
		require.WithinDuration(h.t, time.Now(), by[1].Time, time.Minute)
	}
	return lines, err
}

func serve(t *testing.T, handler http.Handler, keys ...anchor.Verifier) witness.Witness {
	t.Helper()
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	return witness.Witness{URL: srv.URL, Keys: keys}
}

func start(t *testing.T, logs ...anchor.Verifier) (witness.Witness, *witnesstest.Witness) {
	t.Helper()
	server, err := witnesstest.New("witness.example/w1", logs...)
	require.NoError(t, err)
	return serve(t, server, server.Key()), server
}

func TestWitnessFollowsALog(t *testing.T) {
	h := newHistory(t)
	w, server := start(t, h.verifier())
	old := uint64(0)
	for _, size := range []int{1, 2, 3, 7, 8, 96, 97, 200} {
		_, err := h.cosign(w, size, old)
		require.NoError(t, err)
		old = uint64(size)
		require.Equal(t, old, server.Size(origin))
	}
	require.Equal(t, []uint64{1, 2, 3, 7, 8, 96, 97}, h.proofs, "nothing is proven from an empty log, and nothing in vain")
	_, err := h.cosign(w, 200, 200)
	require.NoError(t, err, "the same once more, as after a crash")
}

// TestWitnessSaysItsSize: who does not know what the witness signed last is told, and proves from there.
func TestWitnessSaysItsSize(t *testing.T) {
	h := newHistory(t)
	w, _ := start(t, h.verifier())
	for _, c := range []struct {
		size int
		old  uint64 // believed
	}{{5, 3}, {9, 0}, {20, 7}, {21, 500}, {21, 0}, {22, 22}} {
		_, err := h.cosign(w, c.size, c.old)
		require.NoError(t, err, c)
	}
	require.Equal(t, []uint64{3, 5, 7, 9, 20, 21}, h.proofs)
}

// TestTwoHistories: the log's own key on another history is found out, whatever is submitted of it.
func TestTwoHistories(t *testing.T) {
	h := newHistory(t)
	w, server := start(t, h.verifier())
	_, err := h.cosign(w, 100, 0)
	require.NoError(t, err)

	forged := &history{t: t, key: h.key, leaves: append([]merkle.Hash{}, h.leaves...)}
	forged.leaves[40] = merkle.LeafHash([]byte("rewritten"))
	for _, size := range []int{60, 99, 100, 101, 200} {
		for _, old := range []uint64{0, 50, 100} {
			_, err := forged.cosign(w, size, old)
			require.ErrorIs(t, err, witness.ErrFork, "%d from %d", size, old)
		}
	}
	_, err = h.cosign(w, 99, 0)
	require.ErrorIs(t, err, witness.ErrFork, "a log that was rolled back")
	require.EqualValues(t, 100, server.Size(origin))
	_, err = h.cosign(w, 101, 100)
	require.NoError(t, err)
}

func TestWitnessRefuses(t *testing.T) {
	h, stranger := newHistory(t), newHistory(t)
	w, server := start(t, h.verifier())
	_, err := stranger.cosign(w, 3, 0)
	require.ErrorIs(t, err, witness.ErrRefused, "403")
	unknown, _ := start(t)
	_, err = h.cosign(unknown, 3, 0)
	require.ErrorIs(t, err, witness.ErrRefused, "404")
	require.Zero(t, server.Size(origin))

	_, other := start(t)
	w.Keys = []anchor.Verifier{other.Key()}
	_, err = h.cosign(w, 3, 0)
	require.ErrorContains(t, err, "no line of its answer is of its keys")
	w.Keys = nil
	_, err = w.Cosign(t.Context(), "not a note", 0, nil)
	require.Error(t, err)
	w, _ = start(t, h.verifier())
	_, err = h.cosign(w, 3, 0)
	require.NoError(t, err)
	failed := errors.New("no proof")
	_, err = w.Cosign(t.Context(), h.note(4), 3, func(context.Context, uint64) ([]merkle.Hash, error) { return nil, failed })
	require.ErrorIs(t, err, failed)
}

// TestBadAnswers: whatever a server answers, the call ends with an error that is no evidence.
func TestBadAnswers(t *testing.T) {
	h := newHistory(t)
	_, real := start(t, h.verifier())
	size := 0
	conflict := func(kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(http.StatusConflict)
			_, _ = fmt.Fprint(w, body)
		}
	}
	answer := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, body) }
	}
	for why, handler := range map[string]http.HandlerFunc{
		"nothing": answer(""), "words": answer("signed\n"), "too long": answer(strings.Repeat("— a AAAAAAAA\n", 10_000)),
		"a fault": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
		"a size of another kind": conflict("text/plain", "7\n"), "a size without its end": conflict("text/x.tlog.size", "7"),
		"a size with a zero": conflict("text/x.tlog.size", "07\n"), "no size": conflict("text/x.tlog.size", "\n"),
		"the size that it was given": conflict("text/x.tlog.size", "5\n"),
		"other sizes all the time": func(w http.ResponseWriter, r *http.Request) {
			size = size%4 + 1
			conflict("text/x.tlog.size", fmt.Sprintf("%d\n", size))(w, r)
		},
		"a broken answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = fmt.Fprint(w, "— ")
			panic(http.ErrAbortHandler)
		},
	} {
		w := serve(t, handler, real.Key())
		_, err := h.cosign(w, 9, 5)
		require.Error(t, err, why)
		require.NotErrorIs(t, err, witness.ErrFork, why)
		require.NotErrorIs(t, err, witness.ErrRefused, why)
	}
	_, err := h.cosign(witness.Witness{URL: "http://127.0.0.1:1"}, 9, 0)
	require.Error(t, err)
	_, err = h.cosign(witness.Witness{URL: ":"}, 9, 0)
	require.Error(t, err)

	id, err := hex.DecodeString(strings.Split(real.Key().String(), "+")[1])
	require.NoError(t, err)
	forged := "— witness.example/w1 " + base64.StdEncoding.EncodeToString(append(id, make([]byte, 8+64)...)) + "\n"
	_, err = h.cosign(serve(t, answer(forged), real.Key()), 9, 0)
	require.ErrorIs(t, err, anchor.ErrSignature)
}

// TestSilence: a server that does not answer is given up on, and so is a call whose context ends.
// A witness that says its line a hundred times is heard once: the note does not grow with it.
func TestAWitnessThatRepeatsItself(t *testing.T) {
	h := newHistory(t)
	_, real := start(t, h.verifier())
	stutter := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said := httptest.NewRecorder()
		real.ServeHTTP(said, r)
		w.WriteHeader(said.Code)
		_, _ = fmt.Fprint(w, strings.Repeat(said.Body.String(), 60))
	}), real.Key())
	lines, err := h.cosign(stutter, 9, 0)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(lines, "\n"))
}

func TestSilence(t *testing.T) {
	h := newHistory(t)
	_, real := start(t, h.verifier())
	called, release := make(chan struct{}, 2), make(chan struct{})
	w := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		called <- struct{}{}
		<-release
	}), real.Key())
	t.Cleanup(func() { close(release) })
	w.Timeout = 50 * time.Millisecond
	_, err := h.cosign(w, 9, 0)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	<-called

	w.Timeout = 0
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		<-called
		cancel()
	})
	_, err = w.Cosign(ctx, h.note(9), 0, nil)
	require.ErrorIs(t, err, context.Canceled)
	wg.Wait()
}
