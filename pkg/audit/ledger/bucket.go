package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/agentplatform/agentplatform/pkg/object"
)

// limit is how long an exchange of that many bytes with the bucket may take.
func (l *Ledger) limit(bytes int64) time.Duration { return l.PutTimeout * time.Duration(1+bytes>>20) }

// fetch gives an object to use, which must be done in the time that its size allows.
func (l *Ledger) fetch(ctx context.Context, key string, use func(body io.Reader, size int64) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.AfterFunc(l.PutTimeout, cancel)
	defer timer.Stop()
	body, size, err := l.Bucket.Open(ctx, key, "")
	if err != nil {
		return err
	}
	defer body.Close()
	timer.Reset(l.limit(size))
	return use(body, size)
}

func (l *Ledger) get(ctx context.Context, key string, most int64) (text []byte, err error) {
	err = l.fetch(ctx, key, func(body io.Reader, size int64) error {
		if size > most {
			return fmt.Errorf("%w: %s", object.ErrTooLarge, key)
		}
		text, err = io.ReadAll(io.LimitReader(body, most))
		return err
	})
	return text, err
}

// hash is of an object's bytes; more than most are not read.
func (l *Ledger) hash(ctx context.Context, key string, most int64) (sum string, err error) {
	err = l.fetch(ctx, key, func(body io.Reader, _ int64) error {
		h := sha256.New()
		_, err := io.Copy(h, io.LimitReader(body, most+1))
		sum = hex.EncodeToString(h.Sum(nil))
		return err
	})
	return sum, err
}

// Tries to read what somebody else is just writing: a storage may say that a key is taken a moment before it gives the object out.
const (
	rereads    = 10
	rereadWait = 50 * time.Millisecond
)

// there reads, by read, an object whose key was said to be taken.
func there[T any](ctx context.Context, read func() (T, error)) (v T, err error) {
	for range rereads {
		if v, err = read(); !isMissing(err) {
			return v, err
		}
		wait(ctx, rereadWait)
	}
	return v, err
}

// put writes an object that is locked from then on, once: object.ErrExists when the key is there.
func (l *Ledger) put(ctx context.Context, key, kind string, body io.ReadSeeker, size int64) error {
	ctx, cancel := context.WithTimeout(ctx, l.limit(size))
	defer cancel()
	_, err := l.Bucket.Put(ctx, key, body, object.PutOptions{ContentType: kind, IfNoneMatch: true, RetainUntil: l.retainUntil()})
	return err
}

// lockSlack is how much shorter than a new object's the lock of one that a crash has left may be.
const lockSlack = 24 * time.Hour

// ensureLock repeats the lock of an object that somebody wrote before: whoever it was may have died between object and lock, or be about to lock it.
func (l *Ledger) ensureLock(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, l.limit(0))
	defer cancel()
	want := l.retainUntil()
	locked, err := l.locked(ctx, key, want)
	if locked || err != nil {
		return err
	}
	if err = l.Bucket.Retain(ctx, key, "", want); err != nil {
		if locked, _ := l.locked(ctx, key, want); locked { // by whoever was faster, and for longer: a lock is never shortened
			return nil
		}
	}
	return err
}

func (l *Ledger) locked(ctx context.Context, key string, want time.Time) (bool, error) {
	mode, until, err := l.Bucket.Lock(ctx, key, "")
	return mode == object.Compliance && !until.Before(want.Add(-lockSlack)), err
}

const (
	typeJSON   = "application/json"
	typeNDJSON = "application/x-ndjson"
)

// putLog writes a text that could be no other. One that is there already must be the same.
func (l *Ledger) putLog(ctx context.Context, key string, s *spool) error {
	body, err := s.reader()
	if err != nil {
		return err
	}
	err = l.put(ctx, key, typeNDJSON, body, s.size)
	if !errors.Is(err, object.ErrExists) {
		return err
	}
	found, err := there(ctx, func() (string, error) { return l.hash(ctx, key, s.size) })
	if err != nil {
		return err
	}
	if found != s.hash() {
		return fmt.Errorf("%w: %s has other bytes than the events that belong into it", ErrForeign, key)
	}
	return l.ensureLock(ctx, key)
}

func (l *Ledger) putJSON(ctx context.Context, key string, text []byte) error {
	return l.put(ctx, key, typeJSON, bytes.NewReader(text), int64(len(text)))
}
