package tape

import (
	"math"
	"strconv"
)

// inspectCap bounds what an error message shows of a value, in bytes.
const inspectCap = 512

// Inspect shows a node in an error message, as graphql-js does (three levels, ten items), cut after about 512 bytes.
func (d *Doc) Inspect(at uint32) string {
	b := d.inspect(nil, at, 0)
	if len(b) > inspectCap {
		cut := inspectCap
		for cut > 0 && b[cut]&0xC0 == 0x80 { // not inside a rune
			cut--
		}
		return string(b[:cut]) + "…"
	}
	return string(b)
}

func (d *Doc) inspect(dst []byte, at uint32, depth int) []byte {
	if len(dst) > inspectCap {
		return dst
	}
	const maxDepth, maxItems = 2, 10
	n := &d.Nodes[at]
	switch n.Kind {
	case Array:
		if n.Next == at+1 {
			return append(dst, "[]"...)
		}
		if depth >= maxDepth {
			return append(dst, "[Array]"...)
		}
		dst = append(dst, '[')
		count := 0
		for i := at + 1; i < n.Next; i = d.Nodes[i].Next {
			if count++; count > maxItems {
				continue
			}
			if count > 1 {
				dst = append(dst, ", "...)
			}
			dst = d.inspect(dst, i, depth+1)
		}
		if more := count - maxItems; more == 1 {
			dst = append(dst, ", ... 1 more item"...)
		} else if more > 1 {
			dst = append(append(append(dst, ", ... "...), strconv.Itoa(more)...), " more items"...)
		}
		return append(dst, ']')
	case Object:
		if n.Next == at+1 {
			return append(dst, "{}"...)
		}
		if depth >= maxDepth {
			return append(dst, "[Object]"...)
		}
		dst = append(dst, "{ "...)
		for i := at + 1; i < n.Next && len(dst) <= inspectCap; i = d.Nodes[i+1].Next {
			if i > at+1 {
				dst = append(dst, ", "...)
			}
			dst = append(append(dst, d.Text(i)...), ": "...)
			dst = d.inspect(dst, i+1, depth+1)
		}
		return append(dst, " }"...)
	case Number:
		if f, ok := d.Float(at); !ok {
			if math.Signbit(f) {
				return append(dst, "-Infinity"...)
			}
			return append(dst, "Infinity"...)
		}
		return d.appendNumber(dst, at)
	default:
		return d.Append(dst, at)
	}
}
