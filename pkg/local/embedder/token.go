package embedder

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// script is how a run of characters is read.
type script int

const (
	none    script = iota // separates
	letters               // words with spaces between them, and numbers
	han
	kana // katakana: names and words from abroad
	hira
)

// token is a word, or a run of characters of one script.
type token struct {
	text   string // without case and accents
	script script
	strong bool // begins with a capital, or has a digit
}

// tokens are a text's words, in order. Full-width and other forms of a character are the character (NFKC).
func tokens(text string) []token {
	text = norm.NFKC.String(text)
	found := make([]token, 0, len(text)/5+1)
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		s := scriptOf(r)
		if s == none {
			i += size
			continue
		}
		end := runEnd(text, i, s)
		found = append(found, tokenOf(text[i:end], s, r))
		i = end
	}
	return found
}

// runEnd is where the run of script s ends that begins at start. A point or comma between digits is in it: 1,140 is one number.
func runEnd(text string, start int, s script) int {
	i := start
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		between := (r == ',' || r == '.') && digitAt(text, i-1) && digitAt(text, i+1)
		prolonged := r == 'ー' && (s == kana || s == hira)
		if scriptOf(r) != s && !between && !prolonged {
			break
		}
		i += size
	}
	return i
}

func digitAt(text string, i int) bool {
	return i >= 0 && i < len(text) && text[i] >= '0' && text[i] <= '9'
}

func scriptOf(r rune) script {
	if r < utf8.RuneSelf {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return letters
		}
		return none
	}
	switch {
	case unicode.Is(unicode.Han, r):
		return han
	case unicode.Is(unicode.Katakana, r) || r == 'ー':
		return kana
	case unicode.Is(unicode.Hiragana, r):
		return hira
	case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
		return letters
	}
	return none
}

func tokenOf(text string, s script, first rune) token {
	if s != letters {
		return token{text, s, false}
	}
	t := token{folded(text), s, unicode.IsUpper(first)}
	if strings.ContainsAny(t.text, "0123456789") {
		t.text, t.strong = strings.NewReplacer(",", "", ".", "").Replace(t.text), true
	}
	return t
}

// folded is a word without case and without the marks of Latin, Greek and Cyrillic letters. The marks of other scripts make other letters, and stay.
func folded(word string) string {
	if ascii(word) {
		return strings.ToLower(word)
	}
	apart := norm.NFD.String(cases.Fold().String(word))
	bare := strings.Map(func(r rune) rune {
		if r >= 0x300 && r <= 0x36f {
			return -1
		}
		return r
	}, apart)
	return norm.NFC.String(bare)
}

func ascii(word string) bool {
	for i := range len(word) {
		if word[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
