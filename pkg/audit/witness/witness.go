// Package witness asks witnesses for cosignatures: a client of add-checkpoint of c2sp.org/tlog-witness.
//
// A witness remembers of each log the largest checkpoint that it signed, and signs another only when it holds the old
// one. So who rewrites database, bucket and keys still cannot show two histories that one honest witness both signed.
//
// What holds:
//   - What Cosign returns is verified: lines of the witness's own keys, on this checkpoint.
//   - An answer that says the witness knows a log that ours does not continue is ErrFork: evidence, not a fault to retry.
//   - Every call ends: by its Timeout, and by the limit on what is read of an answer.
package witness

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
)

const (
	maxAnswer = 64 << 10 // bytes read of an answer
	maxHashes = 63       // lines of a consistency proof that a witness takes
	attempts  = 3        // a first one, one with the witness's size, one more if another writer was faster
)

// ErrFork is a witness that signed a checkpoint of this log which the one submitted does not continue: it is larger, or
// of the same size with another root, or no consistency proof leads from it.
var ErrFork = errors.New("witness: it has signed another history of this log")

// ErrRefused is a witness that does not know the log (404) or does not trust its key (403).
var ErrRefused = errors.New("witness: it does not know this log or its key")

// Witness is one witness. It is safe for concurrent use.
type Witness struct {
	URL     string            // submission prefix, without a slash at the end; required
	Keys    []anchor.Verifier // its keys; other lines of its answers are ignored. Required
	HTTP    *http.Client      // nil: a client that follows no redirects
	Timeout time.Duration     // of one call; default 10 s
}

// bare follows no redirects: a checkpoint goes where the operator said.
var bare = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// Cosign submits a log's note and returns the verified lines to add at its end. old is the size that the witness is
// believed to have signed last (0: none); when it answers with another, prove is asked for the proof from that. prove
// gives the consistency proof from a size between 1 and the note's, and is not called for these two.
func (w Witness) Cosign(ctx context.Context, note string, old uint64, prove func(ctx context.Context, old uint64) ([]merkle.Hash, error)) (string, error) {
	log, err := anchor.ParseCheckpoint(note)
	if err != nil {
		return "", err
	}
	old = min(old, log.Size)
	for range attempts {
		var proof []merkle.Hash
		if old > 0 && old < log.Size {
			if proof, err = prove(ctx, old); err != nil {
				return "", fmt.Errorf("witness: consistency proof: %w", err)
			}
		}
		lines, size, err := w.add(ctx, old, proof, note)
		switch {
		case !errors.Is(err, errOtherSize):
			return lines, err
		case size > log.Size:
			return "", fmt.Errorf("%w: of size %d, and ours has %d", ErrFork, size, log.Size)
		case size == old && old == log.Size: // what differs is the root
			return "", fmt.Errorf("%w: of size %d with another root", ErrFork, size)
		case size == old:
			return "", errors.New("witness: it wants the size that it was given")
		}
		old = size
	}
	return "", errors.New("witness: its size changes from call to call: somebody else submits this log")
}

// errOtherSize is a 409 that tells the witness's size.
var errOtherSize = errors.New("witness: it signed another size last")

// add is one call.
func (w Witness) add(ctx context.Context, old uint64, proof []merkle.Hash, note string) (lines string, size uint64, err error) {
	if len(proof) > maxHashes {
		return "", 0, errors.New("witness: the consistency proof is too long")
	}
	timeout := w.Timeout
	if timeout <= 0 {
		timeout = 10 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL+"/add-checkpoint", bytes.NewReader(request(old, proof, note)))
	if err != nil {
		return "", 0, fmt.Errorf("witness: %w", err)
	}
	client := w.HTTP
	if client == nil {
		client = bare
	}
	res, err := client.Do(req)
	if err != nil {
		return "", 0, fmt.Errorf("witness: %w", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return "", 0, fmt.Errorf("witness: %w", err)
	}
	if len(body) > maxAnswer {
		return "", 0, errors.New("witness: the answer is too long")
	}
	return w.answer(res, string(body), note)
}

// request is the body of add-checkpoint.
func request(old uint64, proof []merkle.Hash, note string) []byte {
	body := strconv.AppendUint([]byte("old "), old, 10)
	body = append(body, '\n')
	for _, h := range proof {
		body = append(base64.StdEncoding.AppendEncode(body, h[:]), '\n')
	}
	return append(append(body, '\n'), note...)
}

func (w Witness) answer(res *http.Response, body, note string) (lines string, size uint64, err error) {
	switch res.StatusCode {
	case http.StatusOK:
		lines, _, err = anchor.Cosignatures(note, body, w.Keys)
		if err == nil && lines == "" {
			err = errors.New("witness: no line of its answer is of its keys")
		}
		return lines, 0, err
	case http.StatusConflict:
		kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
		digits, ended := strings.CutSuffix(body, "\n")
		size, err = strconv.ParseUint(digits, 10, 63)
		if kind != "text/x.tlog.size" || !ended || err != nil || strconv.FormatUint(size, 10) != digits {
			return "", 0, errors.New("witness: 409 without its size")
		}
		return "", size, errOtherSize
	case http.StatusUnprocessableEntity:
		return "", 0, fmt.Errorf("%w: no consistency proof holds for it", ErrFork)
	case http.StatusForbidden, http.StatusNotFound:
		return "", 0, fmt.Errorf("%w: %s", ErrRefused, res.Status)
	default:
		return "", 0, fmt.Errorf("witness: it answered %s", res.Status)
	}
}
