package canonical

import "slices"

// before reports whether name a comes before b by UTF-16 code units (RFC 8785 §3.2.3). Both are valid UTF-8.
//
// Bytes of UTF-8 are in the order of code points. UTF-16 differs in one thing only: what lies beyond U+FFFF (first byte F0–F4) begins with a surrogate
// (D800–DBFF) and so comes before U+E000–U+FFFF (first byte EE or EF).
func before(a, b string) bool {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return byteBefore(a[i], b[i])
		}
	}
	return len(a) < len(b)
}

// byteBefore orders the first bytes in which two names differ.
func byteBefore(a, b byte) bool {
	if a >= 0xEE && b >= 0xEE && (a >= 0xF0) != (b >= 0xF0) {
		return a >= 0xF0
	}
	return a < b
}

// member is a member of a map on its way into order.
type member struct {
	name  string
	value any
}

// order sorts by name. Few members are sorted in place by insertion, which is what they cost least with.
func order(members []member) {
	if len(members) > 24 {
		slices.SortFunc(members, func(a, b member) int { return sign(before(a.name, b.name)) })
		return
	}
	for i := 1; i < len(members); i++ {
		m := members[i]
		j := i
		for ; j > 0 && before(m.name, members[j-1].name); j-- {
			members[j] = members[j-1]
		}
		members[j] = m
	}
}

// compare is the same order for names as they stand in canonical text, that is with escapes: -1, 0 or 1.
func compare(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] == '\\' || b[i] == '\\' {
			return compareEscaped(a[i:], b[i:])
		}
		if a[i] != b[i] {
			return sign(byteBefore(a[i], b[i]))
		}
	}
	switch {
	case len(a) == len(b):
		return 0
	default:
		return sign(len(a) < len(b))
	}
}

func compareEscaped(a, b []byte) int {
	for len(a) > 0 && len(b) > 0 {
		x, m := unescape(a)
		y, n := unescape(b)
		if x != y {
			return sign(byteBefore(x, y))
		}
		a, b = a[m:], b[n:]
	}
	if len(a) == 0 && len(b) == 0 {
		return 0
	}
	return sign(len(a) == 0)
}

func sign(less bool) int {
	if less {
		return -1
	}
	return 1
}

// unescape is the first byte of what canonical text s stands for, and how many bytes of s it took. Canonical escapes stand for one byte each.
// s is not empty; text that is not canonical gives some byte, never a panic.
func unescape(s []byte) (byte, int) {
	if s[0] != '\\' || len(s) < 2 {
		return s[0], 1
	}
	if s[1] == 'u' && len(s) >= 6 {
		return unhex[s[4]]<<4 | unhex[s[5]]&15, 6
	}
	return unescaped[s[1]], 2
}
