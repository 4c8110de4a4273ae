package toolserver

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/mcp"
)

// maxOffered is how long a tool's name may be for a model, in characters.
const maxOffered = 64

var (
	plain     = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	forbidden = regexp.MustCompile(`[^A-Za-z0-9_-]`)
	shortened = regexp.MustCompile(`_[0-9a-f]{12}$`)
)

// Name is what a server's tool is offered as: <server>__<tool>, where that is a name for a model, else <server>__<beginning of tool>_<12 hex digits of its
// SHA-256>. A server's name has no two underscores in a row, so that names of different servers differ; a tool whose own name ends as a shortened one is
// shortened too, so that names of one server differ as SHA-256 does.
func Name(server, tool string) string {
	name := server + "__" + tool
	if len(name) <= maxOffered && plain.MatchString(tool) && !shortened.MatchString(tool) {
		return name
	}
	sum := sha256.Sum256([]byte(tool))
	end := "_" + hex.EncodeToString(sum[:6])
	beginning := strings.Trim(forbidden.ReplaceAllString(tool, "_"), "_")
	if most := maxOffered - len(server) - len("__") - len(end); len(beginning) > most {
		beginning = beginning[:most]
	}
	return server + "__" + beginning + end
}

// hash pins what the model and the platform go by.
func hash(t mcp.Tool) string {
	b, _ := json.Marshal([]any{t.Name, t.Description, string(t.Schema), t.Idempotent}) // strings and a boolean: no error
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
