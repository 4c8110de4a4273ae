package offline

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
	"unicode/utf8"
)

// The platform's graders are recognised by how their system prompt begins; what they judge stands between marks.
const (
	gradeOpening         = "You grade another assistant's answer by a rubric."
	gradeBegin, gradeEnd = "<graded_data>", "</graded_data>"
)

// sample is what is to be graded.
type sample struct {
	Output   string  `json:"output"`
	Expected *string `json:"expected"`
}

// grades reports whether r asks for a verdict, about what and by which rubric.
func (r *request) grades() (rubric string, about sample, ok bool) {
	if !strings.HasPrefix(r.prompt(), gradeOpening) {
		return "", about, false
	}
	asked := r.Messages[0]
	for _, b := range asked.Content {
		if b.Text == nil {
			continue
		}
		if data, is := strings.CutPrefix(*b.Text, gradeBegin); is {
			ok = json.Unmarshal([]byte(strings.TrimSuffix(data, gradeEnd)), &about) == nil
		}
	}
	return asked.text(), about, ok
}

var quoted = regexp.MustCompile(`"([^"]+)"|“([^”]+)”`)

// verdict grades by what can be looked up: the share of the phrases in it that the rubric quotes; without any, whether what is expected is in
// it, or the share of its words; without that, whether there is an answer.
func verdict(rubric string, s sample) string {
	output := strings.ToLower(s.Output)
	var wanted []string
	what := "phrases that the rubric quotes"
	for _, m := range quoted.FindAllStringSubmatch(rubric, -1) {
		wanted = append(wanted, m[1]+m[2])
	}
	if wanted == nil && s.Expected != nil {
		what = "words that are expected"
		if wanted = strings.Fields(*s.Expected); strings.Contains(output, strings.ToLower(strings.TrimSpace(*s.Expected))) {
			output = strings.ToLower(*s.Expected)
		}
	}
	if wanted == nil {
		if strings.TrimSpace(output) == "" {
			return judge(0, "There is no answer.")
		}
		return judge(1, "There is an answer.")
	}
	found := 0
	for _, w := range wanted {
		if strings.Contains(output, strings.ToLower(w)) {
			found++
		}
	}
	return judge(float64(found)/float64(len(wanted)), fmt.Sprintf("The answer has %d of the %d %s.", found, len(wanted), what))
}

func judge(score float64, reason string) string {
	text, _ := json.Marshal(map[string]any{"score": math.Round(score*100) / 100, "reason": reason}) // a number and a string
	return string(text)
}

// isMaterial reports whether a block is what is to be graded or summarised, or a summary.
func isMaterial(text string) bool {
	return strings.HasPrefix(text, gradeBegin) || strings.HasPrefix(text, conversationBegin) || strings.HasPrefix(text, summaryBegin)
}

// material is the length of such blocks, in runes.
func (m message) material() (n int) {
	for _, b := range m.Content {
		if b.Text != nil && isMaterial(*b.Text) {
			n += utf8.RuneCountInString(*b.Text)
		}
	}
	return n
}
