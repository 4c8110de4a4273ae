package pack

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Skill is what an agent is told of a pack before it asks for more.
type Skill struct {
	Name        string
	Description string
}

const (
	charactersPerToken = 4 // as messages are estimated everywhere
	longest            = 1024
)

// Summary is the block of a system prompt that names an agent's skills: the same for the same skills, in whatever order they come, and at most so many tokens.
// Where that is too little, long descriptions are cut first, as little as will do; then descriptions are left out; then skills, the last by name, and
// those are returned. The block has one beginning and one end, whatever descriptions say. Without skills, or without room, it is empty.
func Summary(skills []Skill, tokens int) (block string, leftOut []string) {
	most := tokens * charactersPerToken
	sorted := make([]Skill, len(skills))
	for i, s := range skills {
		sorted[i] = Skill{Name: line(s.Name), Description: line(s.Description)}
	}
	slices.SortFunc(sorted, func(a, b Skill) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Description, b.Description))
	})
	sorted = slices.Compact(sorted)
	fits := func(shown, length int) bool {
		block = render(sorted, shown, length)
		return utf8.RuneCountInString(block) <= most
	}
	if fits(len(sorted), longest) {
		return block, nil
	}
	if length := largest(longest, func(n int) bool { return fits(len(sorted), n) }); length >= 0 {
		return render(sorted, len(sorted), length), nil
	}
	shown := largest(len(sorted), func(n int) bool { return fits(n, 0) })
	for _, s := range sorted[max(shown, 0):] {
		leftOut = append(leftOut, s.Name)
	}
	if shown <= 0 {
		return "", leftOut
	}
	return render(sorted, shown, 0), leftOut
}

// largest is the largest number below limit that fits, -1 if none does; what is below one that fits, fits.
func largest(limit int, fits func(int) bool) int {
	low, high := -1, limit
	for high-low > 1 {
		if middle := (low + high) / 2; fits(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// render writes the first skills, with at most so many characters of each description.
func render(skills []Skill, shown, length int) string {
	if len(skills) == 0 {
		return ""
	}
	var block strings.Builder
	block.WriteString("<available_skills>\n")
	for _, s := range skills[:shown] {
		block.WriteString("<skill>\n<name>" + escape(s.Name) + "</name>\n")
		if description := cut(s.Description, length); description != "" {
			block.WriteString("<description>" + escape(description) + "</description>\n")
		}
		block.WriteString("</skill>\n")
	}
	if more := len(skills) - shown; more > 0 {
		fmt.Fprintf(&block, "<not_listed>%d more</not_listed>\n", more)
	}
	block.WriteString("</available_skills>")
	return block.String()
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace

// line is a text on one line.
func line(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.Join(strings.FieldsFunc(s, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }), " ")
}

// cut is the beginning of a text, with … at its end if that is not all, in at most so many characters.
func cut(s string, most int) string {
	if most == 0 || len(s) <= most {
		return s[:min(len(s), most)]
	}
	seen, end := 0, 0 // end: of the first most-1 characters
	for i := range s {
		if seen == most-1 {
			end = i
		}
		if seen++; seen > most {
			return s[:end] + "…"
		}
	}
	return s
}
