package e2e

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/schema"
)

// unrun is a command that needs what not every machine has.
type unrun struct {
	at      string // file:line
	needs   []string
	command string
}

// listed says which commands were only looked at, by what they need.
func listed(all []unrun) string {
	by := map[string][]string{}
	for _, u := range all {
		first, _, more := strings.Cut(u.command, "\n")
		if more {
			first += " …"
		}
		key := strings.Join(u.needs, ", ")
		by[key] = append(by[key], fmt.Sprintf("  %s  %s", u.at, first))
	}
	keys := make([]string, 0, len(by))
	for key := range by {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	var text strings.Builder
	fmt.Fprintf(&text, "%d documented commands were not run, but looked at:\n", len(all))
	for _, key := range keys {
		fmt.Fprintf(&text, "%d need %s\n%s\n", len(by[key]), key, strings.Join(by[key], "\n"))
	}
	return text.String()
}

// What a command may name of this tree. A piece of a command ends where the shell would end it.
var (
	pieces      = regexp.MustCompile(`\\\n|[;|&)\n]`)
	makeTarget  = regexp.MustCompile(`(?:^|\s)make\s+([a-z][a-z-]*)`)
	chdir       = regexp.MustCompile(`terraform -chdir=(?:infra/)?([a-z]+)\b`)
	tierOutput  = regexp.MustCompile(`\boutput(?: -json| -raw)* ([a-z_]+)`)
	variable    = regexp.MustCompile(`TF_VAR_([a-z_]+)|-var ([a-z_]+)=`)
	resourceAt  = regexp.MustCompile(`[' =](module\.[a-z_]+|aws_[a-z_]+\.[a-z_]+)`)
	ourFunction = regexp.MustCompile(`(?:\$PREFIX-|module\.(?:first|function)\[")([a-z][a-z-]*)(?:" |"\]|\.json|" [a-z])`)
	verifying   = regexp.MustCompile(`audit-verifier ([a-z]+)(.*)`)
	anyFlag     = regexp.MustCompile(`--([a-z][a-z0-9-]*)`)
)

// look reads a command that cannot be run here: bash must be able to read it, and what it names of this tree must be there: targets of make, tiers
// with their outputs, variables and resources, functions, flags of the verifier.
func (r *runner) look(command string) error {
	parse := exec.Command("bash", "-n")
	parse.Stdin = strings.NewReader(command + "\n")
	if out, err := parse.CombinedOutput(); err != nil || len(out) > 0 {
		return fmt.Errorf("it is not what bash reads: %s", out)
	}
	var errs []error
	missing := func(what, name, where string) { errs = append(errs, fmt.Errorf("%s has no %s %s", where, what, name)) }
	joined := strings.ReplaceAll(command, "\\\n", " ")
	for _, piece := range pieces.Split(joined, -1) {
		for _, m := range makeTarget.FindAllStringSubmatch(piece, -1) {
			if !r.holds(`(?m)^`+m[1]+`:`, "Makefile") {
				missing("target", m[1], "Makefile")
			}
		}
		for _, m := range variable.FindAllStringSubmatch(piece, -1) {
			if name := cmp.Or(m[1], m[2]); !r.holds(`(?m)^variable "`+name+`" \{`, "infra/*/variables.tf") {
				missing("variable", name, "infra")
			}
		}
		if m := chdir.FindStringSubmatch(piece); m != nil {
			files := filepath.Join("infra", m[1], "*.tf")
			if !r.holds(`(?m)^terraform \{`, files) {
				missing("tier", m[1], "infra")
				continue
			}
			for _, o := range tierOutput.FindAllStringSubmatch(piece, -1) {
				if !r.holds(`(?m)^output "`+o[1]+`" \{`, files) {
					missing("output", o[1], files)
				}
			}
			for _, a := range resourceAt.FindAllStringSubmatch(piece, -1) {
				kind, name, _ := strings.Cut(a[1], ".")
				declared := `(?m)^resource "` + kind + `" "` + name + `" \{`
				if kind == "module" {
					declared = `(?m)^module "` + name + `" \{`
				}
				if !r.holds(declared, files) {
					missing("resource", a[1], files)
				}
			}
		}
		if m := verifying.FindStringSubmatch(piece); m != nil {
			for _, f := range anyFlag.FindAllStringSubmatch(m[2], -1) {
				if !r.holds(`"`+f[1]+`"`, "cmd/audit-verifier/*.go") {
					missing("flag", f[1], "audit-verifier")
				}
			}
		}
	}
	rows, err := manifest.Parse(schema.Routes)
	if err != nil {
		return err
	}
	for _, m := range ourFunction.FindAllStringSubmatch(functionPlaces(joined), -1) {
		if _, ok := rows.Row(m[1]); !ok {
			missing("row", m[1], "schema/routes.json")
		}
	}
	return errors.Join(errs...)
}

// functionPlaces is what of a command names functions of the deployment; other things have the prefix too.
func functionPlaces(command string) string {
	var found []string
	for _, m := range regexp.MustCompile(`(?:--function-name|restart|/aws/lambda/|sam local invoke)[^\n;|]*`).FindAllString(command, -1) {
		found = append(found, strings.ReplaceAll(m, `-$PREFIX`, `$PREFIX`))
	}
	return strings.Join(found, "\n")
}

// holds says whether one of the tree's files of that pattern matches.
func (r *runner) holds(pattern, files string) bool {
	names, _ := filepath.Glob(filepath.Join(r.tree, files))
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err == nil && regexp.MustCompile(pattern).Match(text) {
			return true
		}
	}
	return false
}

// TestLook: what a command names and is not there is told.
func TestLook(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	r := &runner{tree: root}
	for _, good := range []string{
		`terraform -chdir=infra/data apply -var-file="$VARS" -var deletion_protection=false`,
		`inputs; URL="$(terraform -chdir=infra/app output -raw api_url)/graphql"`,
		`terraform -chdir=infra/foundation state rm 'module.key["audit"]' module.anchor_key`,
		`terraform -chdir=infra/data import -var-file="$VARS" 'aws_rds_cluster.this[0]' "$PREFIX"`,
		`terraform -chdir=infra/app apply -replace='aws_lambda_invocation.before["migrate"]'`,
		"dist/audit-verifier verify \\\n  --public-key key.pem",
		`make build && aws lambda invoke --function-name "$PREFIX-migrate" out.json`,
		`aws rds wait db-instance-available --db-instance-identifier "$PREFIX-restored"`,
	} {
		require.NoError(t, r.look(good), good)
	}
	for bad, want := range map[string]string{
		`if true`:                             "it is not what bash reads",
		`make nothing`:                        "Makefile has no target nothing",
		`terraform -chdir=infra/nowhere init`: "infra has no tier nowhere",
		`terraform -chdir=infra/app output -raw nothing`:                               "infra/app/*.tf has no output nothing",
		`terraform -chdir=infra/data apply -var nothing=1`:                             "infra has no variable nothing",
		`export TF_VAR_nothing=1`:                                                      "infra has no variable nothing",
		`terraform -chdir=infra/data state rm module.nothing`:                          "infra/data/*.tf has no resource module.nothing",
		`terraform -chdir=infra/data state rm 'module.audit' 'module.nothing["x"]'`:    "infra/data/*.tf has no resource module.nothing",
		`terraform -chdir=infra/app apply -replace='aws_lambda_invocation.nothing[0]'`: "infra/app/*.tf has no resource aws_lambda_invocation.nothing",
		`dist/audit-verifier verify --nothing`:                                         "audit-verifier has no flag nothing",
		`aws lambda invoke --function-name "$PREFIX-nothing" out.json`:                 "schema/routes.json has no row nothing",
		`sam local invoke 'module.function["nothing"].aws_lambda_function.this'`:       "schema/routes.json has no row nothing",
	} {
		require.ErrorContains(t, r.look(bad), want, bad)
	}
}
