package channel

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"
)

var (
	deliveryIDs = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,100}$`)
	words       = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)
)

// word is a provider's word, for the log.
func word(s string) string {
	if words.MatchString(s) {
		return s
	}
	return ""
}

// line is s as at most max characters of one line.
func line(s string, max int) string {
	runes := []rune(strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "\uFFFD"), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " "))
	if len(runes) > max {
		return string(runes[:max-1]) + "…"
	}
	return string(runes)
}

// name is the first of several that says something.
func name(several ...string) string {
	for _, s := range several {
		if s = line(s, 100); s != "" {
			return s
		}
	}
	return ""
}

// speaker is what tells the model who has said what follows, where several people do. A name is what somebody calls himself, so there is nothing in it by which it
// could pass for more; the id is the provider's, and always there.
func speaker(s Sender) string {
	called := line(strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.L, unicode.M, unicode.N) || strings.ContainsRune(".-_'", r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(s.Name, "")), 60)
	if called == "" {
		return s.ID + ": "
	}
	return called + " (" + s.ID + "): "
}

// title is what a thread is called by its first message.
func title(body string) *string {
	first, _, _ := strings.Cut(strings.TrimSpace(body), "\n")
	if first = line(first, 80); first == "" {
		return nil
	}
	return &first
}

// attached is a message, with the names of the files that came with it: they are not taken in.
func attached(body string, files []string) string {
	var said []string
	if body = strings.TrimSpace(body); body != "" {
		said = append(said, body)
	}
	for i, f := range files {
		if files[i] = line(f, 100); files[i] == "" {
			files[i] = "a file"
		}
	}
	switch shown := files[:min(len(files), 10)]; {
	case len(files) == 1:
		said = append(said, "[1 attachment was left out: "+files[0]+"]")
	case len(files) > len(shown):
		said = append(said, fmt.Sprintf("[%d attachments were left out: %s, …]", len(files), strings.Join(shown, ", ")))
	case len(files) > 1:
		said = append(said, fmt.Sprintf("[%d attachments were left out: %s]", len(files), strings.Join(shown, ", ")))
	}
	if len(said) == 0 {
		return "[no text]"
	}
	return strings.Join(said, "\n\n")
}

// fit is a reply that has at most max characters, counted as the strictest counts them, with what ends it. What is too long is cut, and says where the whole is.
func fit(r Reply, max int, end string) string {
	body := strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(r.Body, "\x00", ""), "\uFFFD"))
	if units(body)+units(closing(body))+units(end) <= max {
		return body + closing(body) + end
	}
	where := "\n\n*The whole answer is in thread " + r.ThreadID + ".*"
	left := max - units(where) - units(end) - len("\n") - maxFence - 1
	for i, c := range body {
		if left -= utf16.RuneLen(c); left < 0 {
			body = strings.TrimRightFunc(body[:i], unicode.IsSpace) + "…"
			break
		}
	}
	return body + closing(body) + where + end
}

// units is the length of s in UTF-16.
func units(s string) (n int) {
	for _, c := range s {
		n += utf16.RuneLen(c)
	}
	return n
}
