package guardrail

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Each character is compared in one of two forms, and independently of its neighbours, so that a text can be compared while it is being written:
//
//   - patterns: in Unicode's form NFKC (full-width digits are digits, and ﬁ is fi); characters that nobody sees are nothing.
//   - phrases: besides, without case and accents, letters that look like Latin ones as these, and whatever separates words as one space.

// maxQuiet is how many characters in a row may be nothing; more of them break whatever they stand in.
const maxQuiet = 16

// unseen reports whether r shows nothing, not even a space.
func unseen(r rune) bool {
	switch {
	case r < 0x20 || r >= 0x7f && r < 0xa0:
		return (r < '\t' || r > '\r') && r != 0x85
	case r < 0xa0:
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// plain appends r as patterns see it.
func plain(to []rune, r rune) []rune {
	if unseen(r) {
		return to
	}
	if r < utf8.RuneSelf {
		return append(to, r)
	}
	var b [utf8.UTFMax]byte
	s := b[:utf8.EncodeRune(b[:], r)]
	if norm.NFKC.IsNormal(s) {
		return append(to, r)
	}
	return append(to, []rune(string(norm.NFKC.Bytes(s)))...)
}

// plainText is a text as patterns see it.
func plainText(s string) string {
	var b strings.Builder
	var form []rune
	for _, r := range s {
		form = plain(form[:0], r)
		for _, p := range form {
			b.WriteRune(p)
		}
	}
	return b.String()
}

// folded appends r as phrases see it. Spaces are not yet joined.
func folded(to []rune, r rune) []rune {
	if unseen(r) {
		return to
	}
	if r < utf8.RuneSelf {
		return append(to, letter(r))
	}
	var b [utf8.UTFMax]byte
	s := b[:utf8.EncodeRune(b[:], r)]
	parts := norm.NFKD.Properties(s).Decomposition()
	if parts == nil || unicode.Is(unicode.Hangul, r) { // a syllable of Hangul is compared as one
		parts = s
	}
	for len(parts) > 0 {
		part, size := utf8.DecodeRune(parts)
		if norm.NFKD.Properties(parts).CCC() == 0 {
			to = fold(to, part)
		}
		parts = parts[size:]
	}
	return to
}

// fold appends a letter without case.
func fold(to []rune, r rune) []rune {
	if r == 'ß' || r == 'ẞ' {
		return append(to, 's', 's')
	}
	return append(to, letter(unicode.ToLower(r)))
}

// letter is r in lower case, in Latin if it looks like it; a space if it is no part of a word.
func letter(r rune) rune {
	switch {
	case 'A' <= r && r <= 'Z':
		return r + 'a' - 'A'
	case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
		return r
	case r < utf8.RuneSelf:
		return ' '
	}
	if latin, looks := lookalikes[r]; looks {
		return latin
	}
	if !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) {
		return ' '
	}
	return r
}

// lookalikes are small letters that are read as Latin ones. Phrases are compared in the same way, so words of other scripts are still found.
var lookalikes = map[rune]rune{
	'а': 'a', 'е': 'e', 'о': 'o', 'р': 'p', 'с': 'c', 'у': 'y', 'х': 'x', 'і': 'i', 'ј': 'j', 'ѕ': 's', 'һ': 'h', 'ԁ': 'd', 'ԛ': 'q', 'ԝ': 'w', 'к': 'k', // Cyrillic
	'α': 'a', 'ο': 'o', 'ρ': 'p', 'ν': 'v', 'ι': 'i', 'κ': 'k', 'υ': 'u', 'χ': 'x', 'ς': 'σ', // Greek
	'ı': 'i', 'ø': 'o', 'ł': 'l', 'đ': 'd', 'ħ': 'h', 'ŧ': 't', 'ɑ': 'a', 'ɡ': 'g', // Latin
}

// phraseText is a text as phrases see it.
func phraseText(s string) string {
	var form []rune
	for _, r := range s {
		form = folded(form, r)
	}
	return strings.Join(strings.Fields(string(form)), " ")
}

// unspaced reports whether r is of a script that writes words without spaces between them, or joins endings to them.
func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}
