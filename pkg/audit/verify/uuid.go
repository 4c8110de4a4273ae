package verify

import (
	"encoding/hex"
	"time"

	"github.com/agentplatform/agentplatform/pkg/ident"
)

// uuid is an id as its 16 bytes, which sort as the database and the anchors sort.
type uuid [16]byte

// String is the lower-case text form.
func (u uuid) String() string {
	var s [36]byte
	hex.Encode(s[0:8], u[0:4])
	hex.Encode(s[9:13], u[4:6])
	hex.Encode(s[14:18], u[6:8])
	hex.Encode(s[19:23], u[8:10])
	hex.Encode(s[24:36], u[10:16])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return string(s[:])
}

// parseUUID reads the text form.
func parseUUID(s string) (u uuid, ok bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return u, false
	}
	n := 0
	for i := 0; i < 36; {
		if s[i] == '-' {
			i++
			continue
		}
		high, low := nibble(s[i]), nibble(s[i+1])
		if high > 15 || low > 15 {
			return u, false
		}
		u[n] = high<<4 | low
		n++
		i += 2
	}
	return u, true
}

func nibble(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}

// micros are microseconds since 1970, the precision of all times in the log.
type micros int64

func microsOf(t time.Time) micros { return micros(t.UnixMicro()) }

func (m micros) time() time.Time { return time.UnixMicro(int64(m)).UTC() }

func (m micros) add(d time.Duration) micros { return m + micros(d/time.Microsecond) }

func (m micros) String() string { return stamp(m.time()) }

// stamp is a time as a report spells it.
func stamp(t time.Time) string { return ident.Time{Time: t}.String() }
