package grade

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/agentplatform/agentplatform/pkg/evaluator"
	"github.com/agentplatform/agentplatform/pkg/jsonschema"
)

const expectsNothing = "there is no text to compare with: the case expects nothing"

// exact compares without the white space around, which models add as they like.
func exact(s evaluator.Spec, x Sample) (bool, string) {
	want := s.Text
	if want == nil {
		want = x.Expected
	}
	if want == nil {
		return false, expectsNothing
	}
	if fold(s, strings.TrimSpace(x.Output)) == fold(s, strings.TrimSpace(*want)) {
		return true, "the answer is the text"
	}
	return false, fmt.Sprintf("the answer is %s, not %s", quote(x.Output), quote(*want))
}

func contains(s evaluator.Spec, x Sample) (bool, string) {
	texts := s.Texts
	if len(texts) == 0 && x.Expected != nil {
		texts = []string{*x.Expected}
	}
	if len(texts) == 0 {
		return false, expectsNothing
	}
	output := fold(s, x.Output)
	var missing []string
	for _, t := range texts {
		if !strings.Contains(output, fold(s, t)) {
			missing = append(missing, quote(t))
		}
	}
	anyDoes := s.Match != nil && *s.Match == evaluator.Any
	switch {
	case len(missing) == 0:
		return true, "the answer has all texts in it"
	case anyDoes && len(missing) < len(texts):
		return true, fmt.Sprintf("the answer has %d of %d texts in it", len(texts)-len(missing), len(texts))
	}
	return false, "the answer lacks " + strings.Join(missing, ", ")
}

func matches(s evaluator.Spec, x Sample) (bool, string) {
	pattern, err := compiled(s.Pattern)
	if err != nil {
		return false, "the pattern cannot be read: " + err.Error()
	}
	if found := pattern.FindStringIndex(x.Output); found != nil {
		return true, "the pattern is found: " + quote(x.Output[found[0]:found[1]])
	}
	return false, "the pattern is not found"
}

func compiled(pattern *string) (*regexp.Regexp, error) {
	if pattern == nil {
		return nil, fmt.Errorf("there is none")
	}
	return regexp.Compile(*pattern)
}

func conforms(s evaluator.Spec, x Sample) (bool, string) {
	if s.Schema == nil {
		return false, "the schema cannot be read: there is none"
	}
	schema, err := jsonschema.Compile(*s.Schema)
	if err != nil {
		return false, "the schema cannot be read: " + err.Error()
	}
	if err := schema.Validate(unfenced(x.Output)); err != nil {
		return false, err.Error()
	}
	return true, "the answer is what the schema asks for"
}

// fence is a Markdown code block that is the whole text.
var fence = regexp.MustCompile("(?s)^```[A-Za-z]*[ \t]*\n(.*)\n[ \t]*```$")

// unfenced takes the fence off an answer that is one code block: models put JSON into one, asked for or not.
func unfenced(output string) string {
	output = strings.TrimSpace(output)
	if inside := fence.FindStringSubmatch(output); inside != nil && !strings.Contains(inside[1], "```") {
		return inside[1]
	}
	return output
}

func bounded(s evaluator.Spec, x Sample) (bool, string) {
	characters, words := utf8.RuneCountInString(x.Output), len(strings.Fields(x.Output))
	is := fmt.Sprintf("the answer has %d characters and %d words", characters, words)
	for _, b := range []struct {
		min, max *int
		is       int
		what     string
	}{{s.MinCharacters, s.MaxCharacters, characters, "characters"}, {s.MinWords, s.MaxWords, words, "words"}} {
		if b.min != nil && b.is < *b.min {
			return false, fmt.Sprintf("%s; at least %d %s are asked for", is, *b.min, b.what)
		}
		if b.max != nil && b.is > *b.max {
			return false, fmt.Sprintf("%s; at most %d %s are allowed", is, *b.max, b.what)
		}
	}
	return true, is
}

// fold is the text as it is compared.
func fold(s evaluator.Spec, t string) string {
	if s.IgnoreCase != nil && *s.IgnoreCase {
		return strings.ToLower(strings.ToUpper(t)) // both, for letters that have several of one
	}
	return t
}

// quote is a text within a sentence, cut.
func quote(t string) string {
	const most = 80
	t = strings.Join(strings.Fields(strings.ToValidUTF8(t, "�")), " ")
	if utf8.RuneCountInString(t) > most {
		t = string([]rune(t)[:most-1]) + "…"
	}
	return "“" + t + "”"
}
