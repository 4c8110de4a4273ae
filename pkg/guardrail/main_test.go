package guardrail

import (
	"flag"
	"os"
	"testing"
)

// The properties are quick to try, and what breaks them is rare: more tries than rapid's 100, unless the command says how many.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		_ = flag.Set("rapid.checks", "500")
	}
	os.Exit(m.Run())
}
