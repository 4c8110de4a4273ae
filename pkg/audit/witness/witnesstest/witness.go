// Package witnesstest is a witness for tests: the server of add-checkpoint as c2sp.org/tlog-witness has it, strict, on
// the code of others (transparency-dev, golang.org/x/mod), so that it does not agree with ours by sharing it.
//
// It keeps of each log the last checkpoint it signed, in memory only: a witness that is used for evidence is run by
// somebody else and keeps it on disk.
package witnesstest

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/transparency-dev/formats/log"
	formats "github.com/transparency-dev/formats/note"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/note"
)

// Witness is the server; serve it at the root of a URL.
type Witness struct {
	signer note.Signer
	key    anchor.Verifier
	logs   map[string]note.Verifier // by origin

	mu    sync.Mutex
	state map[string]log.Checkpoint
}

// New is a witness with a new key that knows these logs.
func New(name string, logs ...anchor.Verifier) (*Witness, error) {
	w := &Witness{logs: map[string]note.Verifier{}, state: map[string]log.Checkpoint{}}
	for _, l := range logs {
		v, err := formats.NewECDSAVerifier(l.String())
		if err != nil {
			return nil, err
		}
		w.logs[l.Name()] = v
	}
	secret, public, err := note.GenerateKey(rand.Reader, name)
	if err != nil {
		return nil, err
	}
	if w.signer, err = formats.NewSignerForCosignatureV1(secret); err != nil {
		return nil, err
	}
	if public, err = formats.VKeyToCosignatureV1(public); err != nil {
		return nil, err
	}
	w.key, err = anchor.ParseVerifier([]byte(public), "")
	return w, err
}

// Key is the witness's public key.
func (w *Witness) Key() anchor.Verifier { return w.key }

// Size is that of the last checkpoint that it signed of a log; 0 when it signed none.
func (w *Witness) Size(origin string) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state[origin].Size
}

// request is the body of add-checkpoint, taken apart.
type request struct {
	old        uint64
	proof      [][]byte
	checkpoint string
}

func parse(body string) (r request, ok bool) {
	head, checkpoint, ok := strings.Cut(body, "\n\n")
	lines := strings.Split(head, "\n")
	digits, isOld := strings.CutPrefix(lines[0], "old ")
	old, err := strconv.ParseUint(digits, 10, 63)
	if !ok || !isOld || err != nil || strconv.FormatUint(old, 10) != digits || len(lines) > 1+63 {
		return r, false
	}
	r = request{old: old, checkpoint: checkpoint}
	for _, line := range lines[1:] {
		h, err := base64.StdEncoding.Strict().DecodeString(line)
		if err != nil || len(h) != rfc6962.DefaultHasher.Size() {
			return r, false
		}
		r.proof = append(r.proof, h)
	}
	return r, true
}

// ServeHTTP answers POST /add-checkpoint.
func (w *Witness) ServeHTTP(res http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPost || req.URL.Path != "/add-checkpoint" {
		http.NotFound(res, req)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(res, req.Body, 1<<20))
	r, ok := parse(string(body))
	if err != nil || !ok {
		http.Error(res, "not a request of add-checkpoint", http.StatusBadRequest)
		return
	}
	origin, _, _ := strings.Cut(r.checkpoint, "\n")
	key, known := w.logs[origin]
	if !known {
		http.Error(res, "unknown log", http.StatusNotFound)
		return
	}
	c, _, opened, err := log.ParseCheckpoint([]byte(r.checkpoint), origin, key)
	if err != nil {
		http.Error(res, err.Error(), http.StatusForbidden)
		return
	}
	if r.old > c.Size {
		http.Error(res, "the old size is more than the new", http.StatusBadRequest)
		return
	}

	w.mu.Lock() // the state is compared and set as one
	defer w.mu.Unlock()
	last := w.state[origin]
	if last.Size != r.old || last.Size == c.Size && c.Size > 0 && string(last.Hash) != string(c.Hash) {
		res.Header().Set("Content-Type", "text/x.tlog.size")
		res.WriteHeader(http.StatusConflict)
		_, _ = fmt.Fprintf(res, "%d\n", last.Size)
		return
	}
	if !consistent(last, *c, r.proof) {
		http.Error(res, "the consistency proof does not hold", http.StatusUnprocessableEntity)
		return
	}
	signed, err := note.Sign(&note.Note{Text: opened.Text}, w.signer)
	if err != nil {
		http.Error(res, err.Error(), http.StatusInternalServerError)
		return
	}
	w.state[origin] = *c
	_, _ = res.Write(signed[len(opened.Text)+1:])
}

func consistent(old, c log.Checkpoint, path [][]byte) bool {
	if old.Size == 0 || old.Size == c.Size {
		return len(path) == 0
	}
	return proof.VerifyConsistency(rfc6962.DefaultHasher, old.Size, c.Size, path, old.Hash, c.Hash) == nil
}
