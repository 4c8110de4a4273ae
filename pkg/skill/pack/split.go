package pack

import "strings"

// Split cuts a SKILL.md into its front matter and its body. line is the number of the body's first line; 0: the front matter has no end, -1: there is none.
func Split(skill string) (front, body string, line int) {
	first, rest, _ := strings.Cut(skill, "\n")
	if !isFence(first) {
		return "", "", -1
	}
	start := len(skill) - len(rest)
	line = 2
	for at := start; at < len(skill); line++ {
		next := len(skill)
		if end := strings.IndexByte(skill[at:], '\n'); end >= 0 {
			next = at + end + 1
		}
		if isFence(strings.TrimSuffix(skill[at:next], "\n")) {
			return skill[start:at], skill[next:], line + 1
		}
		at = next
	}
	return "", "", 0
}

// isFence: it is a line of --- that nothing follows but white space.
func isFence(line string) bool { return strings.TrimRight(line, " \t\r") == "---" }

// Instructions is the body of a SKILL.md, without the empty lines around it.
func Instructions(skill string) string {
	_, body, _ := Split(skill)
	lines := strings.Split(strings.ReplaceAll(body, "\r\n", "\n"), "\n")
	for len(lines) > 0 && strings.TrimSpace(lines[0]) == "" {
		lines = lines[1:]
	}
	return strings.TrimRight(strings.Join(lines, "\n"), " \t\n")
}
