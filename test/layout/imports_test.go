package layout_test

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The layers, lowest first. A pattern is a folder; `*` stands for one name, a last `/...` for the folder and all below; `!` takes out again.
const (
	words        = "schema pkg/fault pkg/ident pkg/manifest pkg/tenant pkg/page pkg/text pkg/atomicfile pkg/trace pkg/metric"
	evidence     = "pkg/audit pkg/audit/canonical pkg/audit/merkle pkg/audit/anchor" // the audit log's bytes, without any technology
	technologies = "pkg/postgres pkg/model pkg/object pkg/publish pkg/invoke pkg/deadletter pkg/identity pkg/secret pkg/sign pkg/mail pkg/push pkg/workflow pkg/workflow/asl pkg/clock pkg/sandbox pkg/agentcore pkg/guardrail pkg/egress pkg/provider pkg/channel pkg/tracker pkg/mail/inbound pkg/embed"
	times        = "pkg/clock/expression pkg/clock/due"                    // apart from the port: they link the time zones into whoever imports them
	notes        = "pkg/clienttoken pkg/notify pkg/audit pkg/audit/outbox" // rows that every noun writes in its transaction
	nouns        = "pkg/agent pkg/thread pkg/budget pkg/guardrail/store pkg/tool pkg/toolserver pkg/turn pkg/callback pkg/routine pkg/routine/step pkg/webhook pkg/integration pkg/connection pkg/device pkg/task pkg/schedule pkg/evaluator pkg/evaluator/grade pkg/evaluation pkg/retention pkg/space pkg/user"
	log          = "pkg/audit/trail pkg/audit/export pkg/audit/ledger pkg/audit/proof" // who writes the audit log, and who reads it

	forTests = "!pkg/postgres/pgtest !pkg/handler/handlertest !pkg/handler/openapitest !pkg/audit/witness/witnesstest !pkg/audit/trail/trailtest !pkg/audit/verify/verifytest !pkg/oauth/oauthtest" // as what takes them out

	aws    = "github.com/aws/aws-sdk-go-v2/... github.com/aws/smithy-go/..."
	lambda = "github.com/aws/aws-lambda-go/..."
	pgx    = "github.com/jackc/pgx/v5/..."
	group  = "golang.org/x/sync/..."
	retry  = "github.com/cenkalti/backoff/v5/..."
)

// mayImport says, for the code of each package (not its tests), what it may import of this module and from outside; the standard library always.
// The first line that fits a package counts. A package that no line fits fails: put it into its layer.
var mayImport = []struct{ who, project, outside string }{
	// Words that everything speaks: no technology, no noun.
	{"schema pkg/fault pkg/ident pkg/manifest pkg/atomicfile pkg/trace pkg/metric", "", ""},
	{"pkg/tenant pkg/page pkg/text", "pkg/fault", ""},

	{"pkg/jsonschema", "", ""},

	// Technologies: words; never each other, never a noun. Their SDKs are in pkg/cloud, so that a function links those that it needs; all object
	// storage speaks S3, so that one is in pkg/object.
	{"pkg/postgres", words, pgx},
	{"pkg/postgres/embedded", "", pgx + " " + group},
	{"pkg/postgres/migrate", "pkg/postgres", pgx},
	{"pkg/postgres/pgtest", words + " pkg/postgres pkg/postgres/*", pgx},
	{"pkg/model", words, retry},
	{"pkg/object", words, aws},
	{"pkg/publish pkg/invoke pkg/secret pkg/sign pkg/mail pkg/push pkg/workflow pkg/clock pkg/sandbox", words, ""},
	{"pkg/clock/expression pkg/clock/due", words + " pkg/clock " + times, ""},
	{"pkg/workflow/asl", "pkg/workflow", ""},      // the language of definitions: without any technology
	{"pkg/deadletter", words + " pkg/invoke", ""}, // a letter is sent again by an invoke
	{"pkg/identity", words, "github.com/golang-jwt/jwt/v5/... github.com/MicahParks/..."},
	{"pkg/agentcore", "", ""},
	{"pkg/otlp", "pkg/trace", "go.opentelemetry.io/..."},
	{"pkg/egress pkg/oauth/oauthtest", "", ""},
	{"pkg/oauth pkg/mcp", words + " pkg/egress", "github.com/modelcontextprotocol/go-sdk/..."},
	{"pkg/secret/kept", words + " pkg/postgres pkg/secret pkg/oauth", pgx}, // what rows have in the store of secrets, and tokens that are renewed
	{"pkg/guardrail", words, "golang.org/x/text/..."},
	{"pkg/provider", words + " pkg/egress", ""},
	{"pkg/channel", words + " pkg/egress pkg/provider pkg/thread", ""}, // what each provider says, without any technology; as long as a message may be
	{"pkg/tracker", words + " pkg/egress pkg/provider", ""},
	{"pkg/embed", words + " pkg/model", ""},
	{"pkg/skill/pack", "pkg/fault", ""},
	{"pkg/skill/intake", "pkg/fault pkg/skill/pack", "go.yaml.in/yaml/v3/... golang.org/x/text/..."}, // apart from what a turn links
	{"pkg/mail/inbound", words, "github.com/jhillyerd/enmime/v2/... golang.org/x/net/... golang.org/x/text/..."},

	// The audit log: its bytes; the one way in; who writes it and who reads it. The verifier trusts nobody, so it imports no writer.
	{"pkg/audit/canonical pkg/audit/merkle", "", ""},
	{"pkg/audit", "pkg/fault pkg/ident pkg/audit/canonical", ""},
	{"pkg/audit/anchor", "pkg/fault pkg/ident " + evidence, ""},
	{"pkg/audit/witness", "pkg/ident " + evidence, ""},
	{"pkg/audit/witness/witnesstest", evidence, "golang.org/x/mod/... github.com/transparency-dev/..."},
	{"pkg/audit/outbox", words + " pkg/audit pkg/postgres", pgx},
	{"pkg/audit/ledger", words + " " + evidence + " pkg/audit/witness pkg/object pkg/postgres pkg/sign", pgx + " " + group},
	{"pkg/audit/trail", words + " " + evidence + " pkg/postgres", pgx},
	{"pkg/audit/trail/trailtest", words + " " + evidence + " pkg/audit/trail pkg/audit/outbox pkg/postgres pkg/postgres/pgtest", pgx + " github.com/stretchr/testify/..."},
	{"pkg/audit/export", words + " " + evidence + " pkg/audit/trail pkg/object pkg/postgres pkg/sign", pgx},
	{"pkg/audit/proof pkg/audit/verify", words + " " + evidence + " pkg/object pkg/postgres", pgx + " " + group},
	{"pkg/audit/verify/verifytest", words + " " + evidence + " pkg/audit/ledger pkg/audit/outbox pkg/audit/verify pkg/local/bucket pkg/object pkg/postgres/pgtest pkg/sign", pgx + " github.com/stretchr/testify/..."},

	// Nouns: each sees those to its left. Of a technology they see our package, never its SDK; transactions are pgx.Tx.
	{"pkg/clienttoken", words + " pkg/postgres", pgx},
	{"pkg/notify", words + " pkg/postgres pkg/publish", pgx},
	{"pkg/evaluator", words, ""}, // how answers are rated, as data
	{"pkg/evaluator/grade", words + " pkg/evaluator pkg/jsonschema pkg/model", ""},
	{"pkg/agent", words + " " + technologies + " " + notes + " pkg/evaluator", pgx},
	{"pkg/thread", words + " " + technologies + " " + notes + " pkg/agent", pgx},
	{"pkg/tool", words + " " + technologies + " " + notes + " pkg/jsonschema pkg/agent pkg/thread", pgx + " golang.org/x/net/html/..."},
	{"pkg/toolserver", words + " " + technologies + " " + notes + " pkg/jsonschema pkg/oauth pkg/secret/kept pkg/mcp pkg/tool", pgx},
	{"pkg/guardrail/store", words + " " + technologies + " " + notes + " pkg/agent", pgx},
	{"pkg/budget", words + " " + technologies + " " + notes, pgx},
	{"pkg/turn", words + " " + technologies + " " + notes + " pkg/agent pkg/thread pkg/budget pkg/guardrail/store pkg/tool pkg/toolserver pkg/evaluator", pgx + " " + group},
	{"pkg/webhook", words + " " + technologies + " " + notes + " pkg/secret/kept pkg/agent pkg/thread pkg/budget pkg/turn pkg/routine", pgx},
	{"pkg/integration", words + " " + technologies + " " + notes + " pkg/secret/kept pkg/agent pkg/thread pkg/budget pkg/turn pkg/webhook", pgx},
	{"pkg/connection", words + " " + technologies + " " + notes + " pkg/oauth pkg/secret/kept pkg/integration", pgx},
	{"pkg/device", words + " " + technologies + " " + notes, pgx},
	{"pkg/task", words + " " + technologies + " " + notes + " pkg/agent pkg/thread pkg/turn pkg/webhook pkg/integration pkg/connection pkg/device", pgx},
	{"pkg/callback", words + " " + technologies + " " + notes + " pkg/turn", pgx}, // what the workflow engine is told of turns, and of whatever else a task waits for
	{"pkg/schedule", words + " " + technologies + " " + times + " " + notes + " pkg/evaluator pkg/evaluator/grade pkg/evaluation pkg/agent pkg/thread pkg/budget pkg/turn", pgx},
	{"pkg/routine", words + " " + technologies + " " + notes + " pkg/workflow/asl pkg/turn pkg/callback", pgx + " " + group},
	{"pkg/routine/step", words + " " + technologies + " " + notes + " pkg/agent pkg/thread pkg/budget pkg/guardrail/store pkg/tool pkg/turn pkg/callback pkg/routine", pgx},
	{"pkg/evaluation", words + " " + technologies + " " + notes + " pkg/evaluator pkg/evaluator/grade pkg/agent pkg/thread pkg/budget pkg/turn", pgx},
	{"pkg/retention", words + " pkg/postgres pkg/thread", pgx},
	{"pkg/space", words + " " + technologies + " " + notes + " pkg/agent", pgx},
	{"pkg/user", words + " " + technologies + " " + notes + " pkg/agent pkg/space", pgx},

	// What stands between callers and functions knows no noun.
	{"pkg/gateway/...", "pkg/fault pkg/manifest pkg/tenant pkg/handler pkg/gateway/internal/...", lambda + " github.com/vektah/gqlparser/v2/..."},
	{"pkg/handler", words + " " + technologies + " pkg/audit/outbox", lambda},
	{"pkg/cloud", words + " " + technologies + " pkg/handler", aws + " github.com/caarlos0/env/v11/..."},
	{"pkg/cloud/*", words + " " + technologies + " " + times + " pkg/cloud pkg/handler", aws + " " + retry},
	{"pkg/handler/openapitest", "schema", "github.com/pb33f/..."},
	{"pkg/handler/handlertest", words + " " + technologies + " pkg/audit pkg/audit/outbox pkg/gateway pkg/handler pkg/handler/openapitest pkg/local/outbox pkg/postgres/pgtest",
		lambda + " github.com/stretchr/testify/..."},
	{"pkg/runtime", words + " " + technologies + " pkg/handler pkg/turn", ""},
	{"pkg/launch", "pkg/cloud pkg/handler pkg/manifest pkg/metric pkg/trace schema", lambda + " github.com/aws/aws-xray-sdk-go/v2/..."},

	// Functions: a noun's package, its mains, the table, and the HTTP GraphQL function, which has the gateway in it.
	{"functions", "functions/* pkg/handler", ""},
	{"functions/graphql", words + " " + technologies + " pkg/gateway pkg/handler", lambda},
	{"functions/deployment", words + " " + technologies + " " + notes + " " + nouns + " pkg/handler pkg/postgres/migrate", lambda + " " + pgx},
	{"functions/*", words + " " + technologies + " " + notes + " " + nouns + " " + log + " " + evidence + " pkg/handler", lambda + " " + pgx},
	{"functions/*/*", "functions/* pkg/cloud pkg/cloud/* pkg/launch", ""}, // its own noun only: TestAMainOnlyNamesItsFunction

	// The one-machine cloud takes the table as a value, so that it does not import it.
	{"pkg/local", "schema pkg/... !pkg/launch !pkg/cloud/... pkg/cloud/bedrock " + forTests, "..."},
	{"pkg/local/*", words + " " + technologies + " " + times + " pkg/gateway pkg/handler pkg/local/workers", "..."},

	// Commands put everything together, and nobody imports them.
	{"cmd/*", "schema functions pkg/... !pkg/launch " + forTests, "..."},
	{"test/...", "schema functions pkg/... test/... !pkg/launch", "..."},
}

// testsMayImport is the same for tests. They may stand on anything, but not on commands and the cloud's entry point.
const testsMayImport = "schema functions functions/* pkg/... test/... !pkg/launch"

func TestAPackageImportsOnlyWhatLiesBelowIt(t *testing.T) {
	fits := map[int]bool{}
	for _, s := range sources(t) {
		folder := s.folder()
		line := slices.IndexFunc(mayImport, func(l struct{ who, project, outside string }) bool { return matches(l.who, folder) })
		if !assert.GreaterOrEqual(t, line, 0, "%s has no line in mayImport (imports_test.go): which layer is it?", folder) {
			continue
		}
		fits[line] = true
		for _, imported := range slices.Sorted(maps.Keys(s.imports())) {
			name, own := strings.CutPrefix(imported, module+"/")
			first, _, _ := strings.Cut(imported, "/")
			switch {
			case s.test() && own:
				assert.True(t, matches(testsMayImport, name) || name == folder, "%s imports %s", s.path, name)
			case s.test() || !strings.Contains(first, "."):
			case own:
				assert.True(t, matches(mayImport[line].project, name), "%s imports %s; %s may import of this module: %s", s.path, name, folder, mayImport[line].project)
			default:
				assert.True(t, matches(mayImport[line].outside, imported), "%s imports %s; %s may import from outside: %s", s.path, imported, folder, mayImport[line].outside)
			}
		}
	}
	for i, l := range mayImport {
		assert.True(t, fits[i], "no package fits the line of %s in mayImport: take it out", l.who)
	}
}

// matches reports whether a folder or import path fits one of the patterns, and none that takes it out.
func matches(patterns, name string) (fits bool) {
	for pattern := range strings.FieldsSeq(patterns) {
		pattern, out := strings.CutPrefix(pattern, "!")
		one, _ := path.Match(pattern, name)
		above, below := strings.CutSuffix(pattern, "...")
		if one || below && (name+"/" == above || strings.HasPrefix(name, above)) {
			fits = !out
		}
	}
	return fits
}

// What the environment holds is read in two places, so that a function's settings stand on one page each.
var readsTheEnvironment = "cmd/* pkg/cloud pkg/launch"

func TestOnlyEntryPointsReadTheEnvironment(t *testing.T) {
	forbidden := map[string][]string{
		"os":                          {"Getenv", "LookupEnv", "Environ", "ExpandEnv"},
		"syscall":                     {"Getenv", "Environ"},
		"github.com/caarlos0/env/v11": {"Parse", "ParseAs", "ParseWithOptions", "ParseAsWithOptions", "Must"},
	}
	for _, s := range sources(t) {
		if s.test() || matches(readsTheEnvironment, s.folder()) {
			continue
		}
		for imported, name := range s.imports() {
			if imported == "github.com/caarlos0/env/v11" {
				name = "env"
			}
			for _, f := range forbidden[imported] {
				assert.False(t, refers(s, name, f), "%s calls %s.%s: take the value as a setting instead", s.path, name, f)
			}
		}
	}
}
