package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"os"
)

// spoolMemory is how much of a log is kept in memory; a longer one goes into a temporary file.
const spoolMemory = 1 << 20

// spool is a text that is written once and then read.
type spool struct {
	size   int64
	sum    hash.Hash
	memory []byte
	file   *os.File
}

func newSpool() *spool { return &spool{sum: sha256.New()} }

// line appends text and a line end.
func (s *spool) line(text []byte) error {
	s.memory = append(append(s.memory, text...), '\n')
	if len(s.memory) < spoolMemory {
		return nil
	}
	return s.flush()
}

// reset begins again.
func (s *spool) reset() {
	if s.file != nil {
		_ = s.file.Close() // it has no name any more
	}
	*s = spool{sum: sha256.New(), memory: s.memory[:0]}
}

func (s *spool) flush() (err error) {
	if s.file == nil {
		if s.file, err = os.CreateTemp("", "agentplatform-audit-*"); err != nil {
			return err
		}
		if err := os.Remove(s.file.Name()); err != nil { // it is gone with this process, however that ends
			return err
		}
	}
	s.size += int64(len(s.memory))
	s.sum.Write(s.memory)
	_, err = s.file.Write(s.memory)
	s.memory = s.memory[:0]
	return err
}

// reader ends the writing.
func (s *spool) reader() (io.ReadSeeker, error) {
	if s.file == nil {
		if s.size == 0 {
			s.size = int64(len(s.memory))
			s.sum.Write(s.memory)
		}
		return bytes.NewReader(s.memory), nil
	}
	if err := s.flush(); err != nil {
		return nil, err
	}
	_, err := s.file.Seek(0, io.SeekStart)
	return s.file, err
}

// hash is of the whole text, once reader was called.
func (s *spool) hash() string { return hex.EncodeToString(s.sum.Sum(nil)) }

func (s *spool) close() error {
	if s == nil || s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
