package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// docs/verify.md tells of every class of findings and of every flag.
func TestTheDocumentIsWhole(t *testing.T) {
	document := text(t, "../../docs/verify.md")
	classes := regexp.MustCompile(`Class = "([a-z-]+)"`).FindAllStringSubmatch(text(t, "../../pkg/audit/verify/class.go"), -1)
	require.Greater(t, len(classes), 40)
	for _, class := range classes {
		require.Contains(t, document, "`"+class[1]+"`", "a class of findings")
	}
	for _, c := range []*cobra.Command{verifyCommand(), proveCommand(), checkCommand(), exportCommand()} {
		require.Contains(t, document, "`audit-verifier "+c.Name())
		c.Flags().VisitAll(func(f *pflag.Flag) {
			require.Regexp(t, `(--`+f.Name+`|-`+f.Shorthand+`)\b`, document, "a flag of %s", c.Name())
		})
	}
}

func text(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(content)
}
