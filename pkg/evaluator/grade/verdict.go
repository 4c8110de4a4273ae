package grade

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// verdict is what a grader answers.
type verdict struct {
	Score  *float64 `json:"score"`
	Reason string   `json:"reason"`
}

// parseVerdict reads an answer that is one JSON object, in a code block or not: a score from 0 to 1, and a reason. Nothing is guessed from an answer
// that is anything else.
func parseVerdict(answer string) (v verdict, ok bool) {
	d := json.NewDecoder(strings.NewReader(unfenced(answer)))
	if err := d.Decode(&v); err != nil {
		return v, false
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return v, false
	}
	if v.Score == nil || !(*v.Score >= 0 && *v.Score <= 1) || strings.TrimSpace(v.Reason) == "" {
		return v, false
	}
	return v, true
}
