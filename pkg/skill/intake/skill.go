package intake

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/skill/pack"
)

// wrong says what is wrong with a line of SKILL.md.
func wrong(line int, format string, args ...any) error {
	return fault.Invalid("%s, line %d: %s", pack.SkillFile, line, fmt.Sprintf(format, args...))
}

// readSkill reads SKILL.md, but for the links in it.
func readSkill(content []byte, folder string) (pack.Pack, error) {
	if err := checkText(content); err != nil {
		return pack.Pack{}, err
	}
	front, _, line := pack.Split(string(content))
	switch line {
	case -1:
		return pack.Pack{}, wrong(1, "there is no front matter: the first line must be ---, then name and description, then another line of ---")
	case 0:
		return pack.Pack{}, wrong(1, "the front matter that begins here has no end: a line of --- and nothing else")
	}
	root, err := parse(front)
	if err != nil {
		return pack.Pack{}, err
	}
	p := pack.Pack{Instructions: pack.Instructions(string(content))}
	err = readFields(root, folder, &p)
	return p, err
}

// checkText refuses what is not text, at its line.
func checkText(content []byte) error {
	if bytes.HasPrefix(content, []byte("\uFEFF")) {
		return wrong(1, "the file begins with a byte order mark; save it as UTF-8 without one")
	}
	if at := bytes.IndexByte(content, 0); at >= 0 {
		return wrong(lineOf(content, at), "there is a NUL character")
	}
	for at := 0; at < len(content); {
		c, size := utf8.DecodeRune(content[at:])
		if c == utf8.RuneError && size == 1 {
			return wrong(lineOf(content, at), "the text is not UTF-8: byte 0x%02x; save the file as UTF-8", content[at])
		}
		at += size
	}
	return nil
}

func lineOf(content []byte, at int) int { return 1 + bytes.Count(content[:at], []byte("\n")) }

const (
	maxFront      = 8 << 10 // bytes of the front matter: what it must have takes 6 KiB at the most
	maxFrontLines = 200     // each is tried, to find the one that is broken
)

// checkFront refuses a front matter that is not worth parsing.
func checkFront(front string) error {
	if len(front) > maxFront {
		return wrong(1, "the front matter has more than %d KiB; what is long belongs behind it", maxFront>>10)
	}
	lines := strings.Split(front, "\n")
	if len(lines) > maxFrontLines {
		return wrong(1, "the front matter has more than %d lines; what is long belongs behind it", maxFrontLines)
	}
	for i, l := range lines {
		switch {
		case strings.ContainsAny(strings.TrimSuffix(l, "\r"), "\r\u0085\u2028\u2029"):
			return wrong(i+2, "there is a line break that is not a newline")
		case strings.HasPrefix(l, "...") || strings.HasPrefix(l, "---"):
			return wrong(i+2, "the front matter is one YAML document, which ends at a line of --- and nothing else")
		}
	}
	return nil
}
