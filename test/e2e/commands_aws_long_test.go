//go:build long

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	awsCall = regexp.MustCompile(`\baws ([a-z0-9-]+) ([a-z0-9-]+)((?:[^;|\n)$]|\$[^(])*)`)
	// byItself are operations that the aws command makes of others, without a skeleton, and their options.
	byItself = map[string][]string{
		"rds generate-db-auth-token": {"hostname", "port", "username"},
		"ecr get-login-password":     {},
		"lambda invoke":              {"function-name", "invocation-type", "payload"}, // its skeleton wants a function and a file
		"logs tail":                  {"since", "filter-pattern"},
		"rds wait":                   {"db-cluster-identifier", "db-instance-identifier"},
		"s3 cp":                      {"recursive"},
		"lambda wait":                {"function-name"},
	}
	anywhere = []string{"output", "query", "region", "endpoint-url", "no-sign-request"} // options of every operation
)

// TestDocumentedAWSCommands: each operation of the aws command that a document names is there, and has the options that it is given. Nothing is called.
func TestDocumentedAWSCommands(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	var names []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/design/*.md", "infra/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		names = append(names, found...)
	}
	options := map[string]map[string]bool{} // by operation
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		blocks, err := parseDocument(string(text))
		require.NoError(t, err, name)
		for _, b := range blocks {
			for _, s := range b.steps {
				for _, m := range awsCall.FindAllStringSubmatch(strings.ReplaceAll(s.command, "\\\n", " "), -1) {
					operation := m[1] + " " + m[2]
					if options[operation] == nil {
						options[operation] = map[string]bool{}
					}
					for _, f := range anyFlag.FindAllStringSubmatch(m[3], -1) {
						if !slices.Contains(anywhere, f[1]) {
							options[operation][f[1]] = true
						}
					}
				}
			}
		}
	}
	require.Greater(t, len(options), 15, "aws commands in the documents")
	for operation, given := range options {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			known, ok := byItself[operation]
			if !ok {
				known = skeleton(t, operation)
			}
			for option := range given {
				assert.Contains(t, known, option)
			}
		})
	}
}

// skeleton are the options of an operation, by the members of its input.
func skeleton(t *testing.T, operation string) (known []string) {
	t.Helper()
	cmd := exec.Command("aws", append(strings.Fields(operation), "--generate-cli-skeleton", "input")...)
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=none", "AWS_SECRET_ACCESS_KEY=none", "AWS_REGION=us-east-1", "AWS_EC2_METADATA_DISABLED=true", "AWS_PAGER=")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	var input map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(out, &input), "%s", out)
	words := []*regexp.Regexp{regexp.MustCompile(`([A-Z]+)([A-Z][a-z])`), regexp.MustCompile(`([a-z0-9])([A-Z])`)}
	for name, value := range input {
		for _, boundary := range words {
			name = boundary.ReplaceAllString(name, "$1-$2")
		}
		name = strings.ToLower(name)
		known = append(known, name)
		if text := string(value); text == "true" || text == "false" {
			known = append(known, "no-"+name)
		}
	}
	return known
}
