package embed

import (
	"errors"
	"fmt"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/model"
)

// Prepare is what an adapter asks its model about: the texts as valid UTF-8, each no longer than it may be. Too many, or a blank one, is an error.
func Prepare(texts []string) ([]string, error) {
	if len(texts) > MaxTexts {
		return nil, refused(fmt.Sprintf("At most %d texts can be embedded at once; there are %d.", MaxTexts, len(texts)))
	}
	prepared := make([]string, len(texts))
	for i, text := range texts {
		text = strings.ToValidUTF8(Cut(text, MaxCharacters), "\uFFFD")
		if strings.TrimSpace(text) == "" {
			return nil, refused(fmt.Sprintf("Text %d of %d is blank, or begins with %d blank characters: there is nothing to embed.", i+1, len(texts), MaxCharacters))
		}
		prepared[i] = text
	}
	return prepared, nil
}

// Cut is the beginning of text, of up to n characters; a byte that is no UTF-8 is one.
func Cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

func refused(message string) *model.Error {
	e := model.Failure(model.Invalid, false, errors.New(message))
	e.Message = message
	return e
}
