package secret

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/ident"
)

// ID names a secret of one tenant. Of makes it; the zero ID names none. It is no secret itself.
type ID struct{ text string }

// MaxID and MaxWords bound an ID, in characters and in words behind the tenant. Parameter Store allows 1011 characters and 15 levels, its ARN and the
// deployment's prefix included; a file's name has 255 bytes.
const (
	MaxID    = 200
	MaxWords = 8
)

// word is narrower than Parameter Store's letters, digits and .-_ for the sake of file names: without a dot there is no "..", and without capitals no two
// ids are one file where capitals do not count.
var word = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`)

// Of is the ID of a tenant's secret: Of(tenantID, "connections", connectionID). The tenant is a UUID in lower case and each word has a-z, 0-9, - and _
// only, so that no words lead out of the tenant's own. Different tenants or words are different ids. An error does not repeat what was given.
func Of(tenantID string, words ...string) (ID, error) {
	if !ident.Valid(tenantID) || tenantID != strings.ToLower(tenantID) {
		return ID{}, fmt.Errorf("id of a secret: the tenant is not a UUID in lower case")
	}
	if len(words) == 0 || len(words) > MaxWords {
		return ID{}, fmt.Errorf("id of a secret: %d words behind the tenant, where 1 to %d may be", len(words), MaxWords)
	}
	text := tenantID
	for i, w := range words {
		if !word.MatchString(w) {
			return ID{}, fmt.Errorf("id of a secret: word %d is not of a-z, 0-9, - and _, the first a letter or digit", i+1)
		}
		text += "/" + w
	}
	if len(text) > MaxID {
		return ID{}, fmt.Errorf("id of a secret: longer than %d characters", MaxID)
	}
	return ID{text}, nil
}

// String is <tenant>/<word>/…; empty for the zero ID.
func (id ID) String() string { return id.text }
