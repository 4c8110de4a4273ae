package infra_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	block    = regexp.MustCompile(`(?ms)^(variable|output) "(\w+)" \{\n(.*?)^\}`)
	required = regexp.MustCompile(`required_version = ">= 1\.6"`)
	// What came after Terraform 1.6, which is promised to be enough. Tests (*.tftest.hcl) are for whoever develops.
	newer = regexp.MustCompile(`(?m)\bephemeral\b|\w_wo\b|^removed \{|\bprovider::|\btemplatestring\(|\bissensitive\(|\buse_lockfile\b`)
)

// files are the Terraform files of infra/, by path from it.
func files(t *testing.T, suffix string) map[string]string {
	t.Helper()
	found := map[string]string{}
	base := filepath.Join(root, "infra")
	require.NoError(t, filepath.WalkDir(base, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, suffix) || strings.Contains(path, ".terraform") {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(base, path)
		found[name] = string(text)
		return err
	}))
	require.NotEmpty(t, found)
	return found
}

// Every variable and output says what it is, and every variable what type it has.
func TestVariablesAndOutputsAreDescribed(t *testing.T) {
	t.Parallel()
	seen := 0
	for name, text := range files(t, ".tf") {
		for _, b := range block.FindAllStringSubmatch(text, -1) {
			seen++
			assert.Regexp(t, `(?m)^  description = "[A-Z].*\."$`, b[3], "infra/%s: %s %s has no description that ends in a full stop", name, b[1], b[2])
			if b[1] == "variable" {
				assert.Regexp(t, `(?m)^  type +=`, b[3], "infra/%s: variable %s", name, b[2])
			}
		}
	}
	require.Greater(t, seen, 100)
}

// Each rule of a variable is broken by a test, and each variable that can be wrong has a rule.
func TestEachRuleIsTested(t *testing.T) {
	t.Parallel()
	tf, tests := files(t, ".tf"), files(t, ".tftest.hcl")
	for _, tier := range tiers {
		for _, b := range block.FindAllStringSubmatch(tf[tier+"/variables.tf"], -1) {
			free := regexp.MustCompile(`(?m)^  type +=\s+bool$`).MatchString(b[3])
			rules := strings.Count(b[3], "  validation {")
			assert.True(t, free || rules > 0, "infra/%s: variable %s has no rule", tier, b[2])
			broken := strings.Count(tests[tier+"/tests/rules.tftest.hcl"], "var."+b[2]+",")
			assert.GreaterOrEqual(t, broken, rules, "infra/%s/tests/rules.tftest.hcl breaks not each of the %d rules of %s", tier, rules, b[2])
		}
	}
}

// Terraform 1.6 is enough, one version line of the provider is used everywhere, and a tier has no switches for tests.
func TestVersions(t *testing.T) {
	t.Parallel()
	folders, versions := map[string]bool{}, 0
	for name, text := range files(t, ".tf") {
		if strings.Contains(name, "/tests/") {
			continue // run by terraform test alone
		}
		folders[filepath.Dir(name)] = true
		if filepath.Base(name) == "versions.tf" {
			versions++
			assert.Regexp(t, required, text, name)
			assert.Equal(t, []string{"5", "100"}, provider.FindStringSubmatch(text)[2:], name)
		}
		code := regexp.MustCompile(`(?m)#.*$|"[^"]*"`).ReplaceAllString(text, "")
		assert.Empty(t, newer.FindAllString(code, -1), "infra/%s: newer than Terraform 1.6", name)
		assert.NotRegexp(t, `skip_(credentials|requesting|metadata|region)|endpoints \{`, text, "infra/%s: AWS_ENDPOINT_URL is enough for tests", name)
		assert.NotRegexp(t, `(?m)^data "aws_`, text, "infra/%s: a plan asks AWS for nothing; what it would ask is a variable", name)
	}
	require.Equal(t, len(folders), versions, "each folder has its versions.tf")
}

// cfn-lint knows the resources that CloudFormation has and their properties; it comes with moto's server.
func TestCloudFormationTemplates(t *testing.T) {
	t.Parallel()
	var templates []string
	for _, pattern := range []string{"*/*.yaml", "*/*.cfn.json"} {
		found, err := filepath.Glob(filepath.Join(root, "infra", pattern))
		require.NoError(t, err)
		templates = append(templates, found...)
	}
	require.GreaterOrEqual(t, len(templates), 3)
	out, err := exec.Command("cfn-lint", templates...).CombinedOutput()
	require.NoError(t, err, "cfn-lint, which pip install 'moto[server]==5.2.1' brings along, says of %s:\n%s", templates, out)
}
