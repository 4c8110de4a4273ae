package layout_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tooLarge are packages that a function must not link, each with its reason. Those that look up methods by name keep the linker from dropping
// any exported method: one of them doubles a binary.
var tooLarge = map[string]string{
	"text/template":                      "looks up methods by name",
	"html/template":                      "looks up methods by name",
	"net/rpc":                            "looks up methods by name; -tags lambda.norpc keeps it out of aws-lambda-go",
	"github.com/go-playground/validator": "looks up methods by name",
	"github.com/pressly/goose":           "a deployment migrates, not a function",
	"github.com/versity/versitygw":       "object storage on one machine",
	"testing":                            "for tests",
	module + "/pkg/local":                "the platform on one machine",
	module + "/pkg/postgres/embedded":    "the platform on one machine",
}

// tracing links this of tooLarge: the price of X-Ray, paid in pkg/launch and nowhere else.
var tracing = map[string]bool{"text/template": true, "html/template": true}

func TestFunctionsLinkNothingThatMakesThemLarge(t *testing.T) {
	for name, c := range map[string]struct {
		packages []string
		except   map[string]bool
	}{
		"the nouns' packages":    {[]string{"./functions", "./functions/graphql"}, nil},
		"the functions as built": {[]string{"./functions/..."}, tracing},
	} {
		for _, linked := range dependencies(t, c.packages...) {
			for large, why := range tooLarge {
				bad := (linked == large || strings.HasPrefix(linked, large+"/")) && !c.except[large]
				assert.False(t, bad, "%s link %s: %s", name, linked, why)
			}
		}
	}
}

// dependencies are all packages that end up in a function made of these.
func dependencies(t *testing.T, packages ...string) []string {
	t.Helper()
	list := exec.Command("go", append([]string{"list", "-deps", "-tags", "lambda.norpc"}, packages...)...)
	list.Dir = root
	out, err := list.Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}
