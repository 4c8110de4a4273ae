package tape

import (
	"math"
	"strconv"
)

// AppendText writes s as a JSON string the way JSON.stringify does: only what must be escaped is. s is valid UTF-8.
func AppendText(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(dst, s[from:]...), '"')
}

// AppendFloat writes f as JavaScript does: 1, 0.5, 1e+21, 1e-7. f is finite.
func AppendFloat(dst []byte, f float64) []byte {
	if f == 0 {
		return append(dst, '0') // also -0
	}
	if abs := math.Abs(f); abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	if n := len(dst); n >= 4 && dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') {
		dst[n-2] = dst[n-1] // e-07 is e-7
		dst = dst[:n-1]
	}
	return dst
}

// Float is the value of a number node; ok is false when it is beyond a float64.
func (d *Doc) Float(at uint32) (f float64, ok bool) {
	f, err := strconv.ParseFloat(string(d.Raw(at)), 64)
	return f, err == nil || !math.IsInf(f, 0)
}

// Int is the value of a number node written as a short plain integer, the usual case; ok is false for all other forms.
func (d *Doc) Int(at uint32) (v int64, ok bool) {
	raw := d.Raw(at)
	neg := raw[0] == '-'
	if neg {
		raw = raw[1:]
	}
	if len(raw) > 15 { // 15 digits are exact in a float64
		return 0, false
	}
	for _, c := range raw {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + int64(c-'0')
	}
	if neg {
		v = -v
	}
	return v, true
}

// Append writes the node as JSON.stringify(JSON.parse(text)) does: no white space, one spelling for each string and number.
// An integer of more than 15 digits keeps its digits.
func (d *Doc) Append(dst []byte, at uint32) []byte {
	switch n := &d.Nodes[at]; n.Kind {
	case String:
		if n.Escaped {
			return AppendText(dst, d.Text(at))
		}
		return append(dst, d.Src[n.Start:n.End]...)
	case Number:
		return d.appendNumber(dst, at)
	case Array:
		dst = append(dst, '[')
		for i := at + 1; i < n.Next; i = d.Nodes[i].Next {
			if i > at+1 {
				dst = append(dst, ',')
			}
			dst = d.Append(dst, i)
		}
		return append(dst, ']')
	case Object:
		dst = append(dst, '{')
		for i := at + 1; i < n.Next; i = d.Nodes[i+1].Next {
			if i > at+1 {
				dst = append(dst, ',')
			}
			dst = append(d.Append(dst, i), ':')
			dst = d.Append(dst, i+1)
		}
		return append(dst, '}')
	default:
		return append(dst, d.Src[n.Start:n.End]...)
	}
}

func (d *Doc) appendNumber(dst []byte, at uint32) []byte {
	raw := d.Raw(at)
	if digits(raw, 0) == len(raw) || (raw[0] == '-' && raw[1] != '0' && digits(raw, 1) == len(raw)) {
		return append(dst, raw...)
	}
	f, ok := d.Float(at)
	if !ok {
		return append(dst, "null"...) // as JSON.stringify writes an infinity
	}
	return AppendFloat(dst, f)
}
