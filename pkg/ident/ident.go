// Package ident makes and checks the platform's identifiers: UUIDv7 (RFC 9562 §5.7) and public thread ids `<PREFIX>-<n>`.
package ident

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// New is a fresh UUIDv7 in its canonical lower-case text form.
func New() string {
	var b [16]byte
	rand.Read(b[6:]) // never fails (crypto/rand)
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(time.Now().UnixMilli()))
	copy(b[:6], ms[2:])
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	return format(b)
}

// Derive is the UUIDv7 of something that may be asked for twice: always the same of the same id and words, made at that id's time. The words are told
// apart: "ab", "c" is not "a", "bc". of must be Valid.
func Derive(of string, words ...string) string {
	h := sha256.New()
	for _, w := range append([]string{strings.ToLower(of)}, words...) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(w))))
		h.Write([]byte(w))
	}
	var b [16]byte
	copy(b[:], h.Sum(nil))
	if at, err := hex.DecodeString(of[:8] + of[9:13]); err == nil {
		copy(b[:6], at)
	}
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	return format(b)
}

func format(b [16]byte) string {
	var s [36]byte
	hex.Encode(s[0:8], b[0:4])
	hex.Encode(s[9:13], b[4:6])
	hex.Encode(s[14:18], b[6:8])
	hex.Encode(s[19:23], b[8:10])
	hex.Encode(s[24:36], b[10:16])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return string(s[:])
}

// Valid reports whether s is a UUID in its 36-character text form.
func Valid(s string) bool {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if i == 8 || i == 13 || i == 18 || i == 23 {
			continue
		}
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
			return false
		}
	}
	return true
}

// Thread is a public thread id taken apart: CHAT-12 is {CHAT, 12}.
type Thread struct {
	Prefix string
	Number int64
}

func (t Thread) String() string { return t.Prefix + "-" + strconv.FormatInt(t.Number, 10) }

// ParseThread takes `<PREFIX>-<n>` apart; only the spelling that String gives is accepted.
func ParseThread(s string) (Thread, bool) {
	prefix, digits, ok := strings.Cut(s, "-")
	if !ok || prefix == "" || len(prefix) > 16 {
		return Thread{}, false
	}
	for _, c := range prefix {
		if c < 'A' || c > 'Z' {
			return Thread{}, false
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 1 {
		return Thread{}, false
	}
	t := Thread{Prefix: prefix, Number: n}
	return t, t.String() == s
}
