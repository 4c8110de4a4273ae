package canonical

import (
	"encoding/binary"
	"math/bits"
)

const hexDigits = "0123456789abcdef"

// escapes is what follows the backslash for a byte that must be escaped: 0 for none, 'u' for \u00xx.
var escapes = func() (t [256]byte) {
	for c := range ' ' {
		t[c] = 'u'
	}
	t['\b'], t['\t'], t['\n'], t['\f'], t['\r'], t['"'], t['\\'] = 'b', 't', 'n', 'f', 'r', '"', '\\'
	return t
}()

// unescaped is the byte that a two-character escape stands for in any JSON text: 0 for none. Of these only \/ is not canonical.
var unescaped = [256]byte{'b': '\b', 't': '\t', 'n': '\n', 'f': '\f', 'r': '\r', '"': '"', '\\': '\\', '/': '/'}

// unhex is the value of a hexadecimal digit, 255 for other bytes.
var unhex = func() (t [256]byte) {
	for i := range t {
		t[i] = 255
	}
	for i := range 10 {
		t['0'+i] = byte(i)
	}
	for i := range 6 {
		t['a'+i], t['A'+i] = byte(10+i), byte(10+i)
	}
	return t
}()

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special marks, with the high bit of each byte of w, the bytes that cannot be copied blindly inside a string: control characters, `"`, `\` and the
// bytes of multi-byte characters. Only the lowest mark is exact: a borrow may mark bytes above it.
func special(w uint64) uint64 {
	quote, slash := w^('"'*ones), w^('\\'*ones)
	return ((w-0x20*ones)&^w | (quote-ones)&^quote | (slash-ones)&^slash | w) & highs
}

// plain is the index, from i on, of the first byte of t that is special; len(t) if there is none.
func plain(t []byte, i int) int {
	for ; i+8 <= len(t); i += 8 {
		if m := special(binary.LittleEndian.Uint64(t[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for ; i < len(t); i++ {
		if c := t[i]; c >= 0x80 || escapes[c] != 0 {
			return i
		}
	}
	return i
}

// plainString is plain for a string.
func plainString(s string, i int) int {
	for ; i+8 <= len(s); i += 8 {
		p := s[i : i+8]
		w := uint64(p[0]) | uint64(p[1])<<8 | uint64(p[2])<<16 | uint64(p[3])<<24 | uint64(p[4])<<32 | uint64(p[5])<<40 | uint64(p[6])<<48 | uint64(p[7])<<56
		if m := special(w); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c >= 0x80 || escapes[c] != 0 {
			return i
		}
	}
	return i
}
