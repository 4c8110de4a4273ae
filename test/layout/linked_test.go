package layout_test

import (
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/manifest"
)

// tooLarge are packages that a function must not link, each with its reason. Those that look up methods by name keep the linker from dropping
// any exported method: one of them doubles a binary.
var tooLarge = map[string]string{
	"text/template":                      "looks up methods by name; -tags grpcnotrace keeps it out of what X-Ray links",
	"html/template":                      "as text/template",
	"net/rpc":                            "looks up methods by name; -tags lambda.norpc keeps it out of aws-lambda-go",
	"github.com/go-playground/validator": "looks up methods by name",
	"github.com/versity/versitygw":       "object storage on one machine",
	"testing":                            "for tests",
	module + "/pkg/local":                "the platform on one machine",
	module + "/pkg/postgres/embedded":    "the platform on one machine",
	module + "/pkg/otlp":                 "functions have X-Ray",
}

func TestFunctionsLinkNothingThatMakesThemLarge(t *testing.T) {
	for function, linked := range functionsLink(t) {
		for _, name := range linked {
			for large, why := range tooLarge {
				assert.False(t, name == large || strings.HasPrefix(name, large+"/"), "%s links %s: %s", function, name, why)
			}
		}
	}
}

// service is a package of the SDK that asks one AWS service.
var service = regexp.MustCompile(`^github\.com/aws/aws-sdk-go-v2/service/([a-z0-9]+)$`)

// A main names its adapters so that its binary holds the SDKs of those alone: even without a client the schemas of all operations of an SDK are
// linked, and built at each start. S3 is in every function, for package object is its port; that SDK has no schemas, and the linker leaves out what
// nobody calls.
func TestAFunctionLinksTheSDKsOfItsNeedsOnly(t *testing.T) {
	links := functionsLink(t)
	for _, row := range rows(t).Rows {
		function := path.Join("functions", row.Package, row.Name)
		want := map[string]bool{"s3": true}
		for _, a := range adapters {
			if a.service != "" && slices.ContainsFunc(row.Needs, regexp.MustCompile(a.needs).MatchString) {
				want[a.service] = true
			}
		}
		got := map[string]bool{}
		for _, linked := range links[function] {
			if found := service.FindStringSubmatch(linked); found != nil {
				got[found[1]] = true
			}
			assert.NotEqual(t, "github.com/aws/aws-sdk-go-v2/service/s3/schemas", linked, "S3's SDK has schemas now: put it below pkg/cloud, and a port without it into pkg/object")
		}
		assert.Equal(t, want, got, "SDKs that %s links, by its needs", function)
	}
}

// functionsLink are all packages that end up in each function, by its folder.
var functionsLink = func() func(*testing.T) map[string][]string {
	list := sync.OnceValues(func() (map[string][]string, error) {
		list := exec.Command("go", "list", "-tags", manifest.Tags, "-f", `{{if eq .Name "main"}}{{.ImportPath}} {{join .Deps " "}}{{end}}`, "./functions/...")
		list.Dir = root
		list.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
		out, err := list.Output()
		links := map[string][]string{}
		for line := range strings.Lines(string(out)) {
			if names := strings.Fields(line); len(names) > 0 {
				links[strings.TrimPrefix(names[0], module+"/")] = names[1:]
			}
		}
		return links, err
	})
	return func(t *testing.T) map[string][]string {
		t.Helper()
		links, err := list()
		require.NoError(t, err)
		require.NotEmpty(t, links)
		return links
	}
}()
