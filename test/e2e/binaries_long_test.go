//go:build long

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/local/host"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/schema"
)

// notWithBinaries are the tests of this folder that say nothing more when the functions run as AWS runs them, each with its reason.
var notWithBinaries = map[string]string{
	"TestBinaries":                         "this one",
	"TestCommands":                         "the documentation's commands start platforms of their own",
	"TestCommandsRunner":                   "starts no platform",
	"TestCommandsRunnerRefuses":            "starts no platform",
	"TestMatches":                          "starts no platform",
	"TestLook":                             "starts no platform",
	"TestDocumentedAWSCommands":            "starts no platform",
	"TestAppSyncResolverSpeaksToFunctions": "starts no platform",
	"TestNoPostgreSQL":                     "ends before there are functions",
	"TestDataDirCannotBeUsed":              "ends before there are functions",
	"TestNoBinaries":                       "ends before there are functions",
	"TestPortInUse":                        "ends before there are functions",
	"TestBedrockWithoutCredentials":        "ends before there are functions",
	"TestARuntimeAtAWSIsRefused":           "ends before there are functions",
}

// TestBinaries runs this folder's tests once more, against platforms whose functions are the binaries that AWS would run, each invoked over Lambda's
// Runtime API in processes of its own; then it measures how long each takes to start. Alone: go test -tags long ./test/e2e -run TestBinaries
func TestBinaries(t *testing.T) {
	if functions != "" {
		return // this is the second time
	}
	folder := buildFunctions(t)
	inner := exec.Command(os.Args[0], "-test.skip", "^("+strings.Join(slices.Sorted(maps.Keys(notWithBinaries)), "|")+")$", "-test.v", "-test.timeout", "15m")
	inner.Env = append(os.Environ(), functionsVariable+"="+folder)
	proc, err := launch(inner)
	require.NoError(t, err)
	<-proc.done
	text := proc.output.String()
	if code := proc.cmd.ProcessState.ExitCode(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, text)
	}
	passed := regexp.MustCompile(`(?m)^--- PASS: (\w+)`).FindAllStringSubmatch(text, -1)
	scripts := regexp.MustCompile(`(?m)^    --- PASS: TestScripts/(\w+)`).FindAllStringSubmatch(text, -1)
	files, err := filepath.Glob("*.txt")
	require.NoError(t, err)
	require.Len(t, scripts, len(files), "every script ran")
	require.Greater(t, len(passed), 20)
	t.Logf("%d tests and %d scripts passed against the binaries", len(passed), len(scripts))
	if at := strings.Index(text, startsTitle); at >= 0 {
		t.Log("while these tests shared the machine, " + text[at:])
	}
	t.Log(measureStarts(t, folder))
}

// buildFunctions builds all functions for this machine, as cmd/pack builds them for Lambda.
func buildFunctions(t testing.TB) string {
	t.Helper()
	folder := dataDir(t)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", folder+string(filepath.Separator), "-tags", manifest.Tags, "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w", "./functions/...")
	build.Dir = "../.."
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return folder
}

// measureStarts starts each function some times, one after the other, on nothing: what they ask for refuses them, after their start.
func measureStarts(t testing.TB, folder string) string {
	t.Helper()
	rows, err := manifest.Parse(schema.Routes)
	require.NoError(t, err)
	const refused, long, arn = "127.0.0.1:9", "a setting that is long enough for a secret", "arn:aws:iam::123456789012:"
	h, err := host.New(host.Config{Dir: folder, Functions: host.Functions(rows), Instances: 1, StartLimit: time.Minute, Log: slog.New(slog.DiscardHandler),
		Environment: func(string) []string {
			database := "postgres://role:password@" + refused + "/database?sslmode=disable"
			return []string{"DATABASE_URL=" + database, "DATABASE_READER_URL=" + database, "DATABASE_LEDGER_URL=" + database, "DATABASE_OWNER_URL=" + database,
				"AWS_ENDPOINT_URL=http://" + refused, "AWS_ENDPOINT_URL_BEDROCK_RUNTIME=http://" + refused, "APPSYNC_URL=http://" + refused, "AWS_MAX_ATTEMPTS=1",
				"AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=secret", "FUNCTION_PREFIX=test-", "USER_POOL_ID=us-east-1_x", "DEFAULT_MODEL_ID=model",
				"PAGE_TOKEN_KEY=" + long, "AUDIT_EMISSION_KEY=" + long, "API_AUTH_SECRET=" + long, "ANCHOR_SIGNING_KEY_ID=key", "ANCHOR_BUCKET=anchors",
				"EXPORTS_BUCKET=exports", "ANCHOR_ORIGIN=origin", "TOOL_SECRETS_PREFIX=/tools", "TOOL_SECRETS_KEY_ID=key",
				"INTEGRATION_SECRETS_PREFIX=/integrations", "INTEGRATION_SECRETS_KEY_ID=key", "CONNECTION_SECRETS_PREFIX=/connections", "CONNECTION_SECRETS_KEY_ID=key", "MAIL_BUCKET=mail",
				"WORKFLOW_ROLE_ARN=" + arn + "role/routines", "SCHEDULE_GROUP=tenants", "SCHEDULE_TARGET_ARN=arn:aws:states:us-east-1:123456789012:stateMachine:auto-thread",
				"SCHEDULE_ROLE_ARN=" + arn + "role/schedules"}
		}})
	require.NoError(t, err)
	defer h.Stop()
	const times = 5
	for range times {
		for _, row := range rows.Rows {
			ctx, cancel := context.WithTimeout(t.Context(), waitTime)
			_, err := h.Invoke(ctx, row.Name, []byte(`"no event"`)) // another function's turn ends the instance
			cancel()
			if failed := new(host.FunctionError); err != nil {
				require.ErrorAs(t, err, &failed, row.Name)
				require.NotContains(t, failed.Type, "Runtime.", "%s: %s", row.Name, failed.Message)
			}
		}
	}
	return table(t, folder, rows, h.Starts(), times)
}

// table is a line a package of functions, by its slowest function.
func table(t testing.TB, folder string, rows manifest.Manifest, starts []host.Start, times int) string {
	t.Helper()
	type group struct {
		functions int
		p50, most time.Duration
		largest   int64
	}
	groups := map[string]*group{}
	for _, s := range starts {
		row, _ := rows.Row(s.Function)
		info, err := os.Stat(filepath.Join(folder, s.Function))
		require.NoError(t, err)
		g := groups[row.Package]
		if g == nil {
			g = &group{}
			groups[row.Package] = g
		}
		g.functions++
		g.p50, g.most, g.largest = max(g.p50, s.P50), max(g.most, s.Max), max(g.largest, info.Size())
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "one at a time, from the start of a function's process to the first invoke it asks for, %d starts each; the slowest function of each package:\n", times)
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "package\tfunctions\tp50\tmax\tlargest binary")
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		g := groups[name]
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%.1f MB\n", name, g.functions, g.p50.Round(100*time.Microsecond), g.most.Round(100*time.Microsecond), float64(g.largest)/1e6)
	}
	w.Flush()
	return text.String()
}
