package canonical

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"unicode/utf8"
)

// generator writes JSON texts at random, with white space and escapes as they come, and breaks some of them.
type generator struct {
	*rand.Rand
	out []byte
}

// next is a document; about a third are not right.
func (g *generator) next() []byte {
	g.out = g.out[:0]
	g.space()
	g.value(g.IntN(5))
	g.space()
	if g.IntN(3) == 0 {
		g.out = g.damage(g.out)
	}
	return g.out
}

func (g *generator) pick(choices ...string) { g.out = append(g.out, choices[g.IntN(len(choices))]...) }

func (g *generator) space() {
	if g.IntN(6) == 0 {
		g.pick(" ", "\n", "\t", "\r\n", "  ")
	}
}

func (g *generator) value(levels int) {
	if levels == 0 {
		switch g.IntN(8) {
		case 0:
			g.pick("true", "false", "null")
		case 1, 2, 3:
			g.number()
		default:
			g.text(12)
		}
		return
	}
	if g.IntN(3) == 0 {
		g.list('[', ']', func() { g.value(g.IntN(levels)) })
		return
	}
	g.list('{', '}', func() {
		g.text(4)
		g.space()
		g.out = append(g.out, ':')
		g.space()
		g.value(g.IntN(levels))
	})
}

func (g *generator) list(open, end byte, element func()) {
	g.out = append(g.out, open)
	for i := range g.IntN(6) {
		if i > 0 {
			g.out = append(g.out, ',')
		}
		g.space()
		element()
		g.space()
	}
	g.out = append(g.out, end)
}

func (g *generator) number() {
	switch g.IntN(24) {
	case 0: // right or not, by a library's lights
		g.pick("-0", "1.0", "1e2", "-0.0", "0.1", "1E+2", "9007199254740992", "-9007199254740993", "123456789012345678901234567890", "1e400", "1e21", "4.5e-7")
	case 1: // never right
		g.pick("01", "+1", ".5", "1.", "-", "0x10", "1e", "NaN", "Infinity", "-Infinity", "1_0", "١", "--1", "1e+")
	case 2:
		g.out = strconv.AppendInt(g.out, g.Int64N(MaxInteger+1), 10)
	case 3:
		g.out = strconv.AppendInt(g.out, -1-g.Int64N(MaxInteger), 10)
	default:
		g.out = strconv.AppendInt(g.out, g.Int64N(2000)-1000, 10)
	}
}

// text is a string of few letters, so that names share beginnings, and some are there twice.
func (g *generator) text(most int) {
	g.out = append(g.out, '"')
	for range g.IntN(most + 1) {
		r := letters[g.IntN(len(letters))]
		switch {
		case g.IntN(3) > 0:
			r = rune('a' + g.IntN(3))
			fallthrough
		case r >= ' ' && r != '"' && r != '\\' && g.IntN(4) > 0:
			g.out = utf8.AppendRune(g.out, r)
		case r > 0xFFFF:
			r -= 0x10000
			g.out = fmt.Appendf(g.out, `\u%04x\u%04X`, 0xD800+r>>10, 0xDC00+r&0x3FF)
		default:
			g.out = fmt.Appendf(g.out, `\u%04x`, r)
		}
	}
	if g.IntN(300) == 0 {
		g.pick(`\ud800`, `\udc00`, `\udc00\ud800`, `\ud800\ud800`, `\ud83dx`, "\xff", "\xc3", "\xed\xa0\x80", "\n", "\x00", `\x`, `\u12`, `\/`, `\b`)
	}
	g.out = append(g.out, '"')
}

// damage changes a byte, takes some out, puts one in or doubles some.
func (g *generator) damage(text []byte) []byte {
	if len(text) == 0 {
		return text
	}
	at := g.IntN(len(text))
	end := min(at+1+g.IntN(6), len(text))
	const marks = ` "\{}[],:-0123456789.eEutfn` + "\xff\x00\n"
	switch g.IntN(5) {
	case 0:
		text[at] = marks[g.IntN(len(marks))]
	case 1:
		text[at] ^= 1 << g.IntN(8)
	case 2:
		text = append(text[:at], text[end:]...)
	case 3:
		text = append(text[:end], append([]byte(nil), text[at:]...)...)
	default:
		text = append(text[:at], append([]byte{marks[g.IntN(len(marks))]}, text[at:]...)...)
	}
	return text
}
