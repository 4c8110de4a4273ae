package layout_test

import (
	"encoding/json"
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/manifest"
)

const operations = "docs/operations.md"

// section is the document's text below a heading, up to the next one of the same rank.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	rank, _, _ := strings.Cut(heading, " ")
	_, below, found := strings.Cut(text, "\n"+heading+"\n")
	require.True(t, found, "%s has no %q", operations, heading)
	below, _, _ = strings.Cut(below, "\n"+rank+" ")
	return below
}

// cells are the rows of the tables of a text, without headings and rules.
func cells(text string) (found [][]string) {
	rule := regexp.MustCompile(`^\|[-:| ]+\|$`)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "|") || rule.MatchString(line) || i+1 < len(lines) && rule.MatchString(lines[i+1]) {
			continue
		}
		row := strings.Split(strings.Trim(line, "|"), " | ")
		for i := range row {
			row[i] = strings.Trim(row[i], " |*")
		}
		found = append(found, row)
	}
	return found
}

// Whoever is woken by an alarm finds its row, and no row is of an alarm that is not there.
func TestEachAlarmIsExplained(t *testing.T) {
	source := read(t, "infra/app/alarms.tf")
	keys := func(block string) (names []string) { // of a map in locals
		_, body, found := strings.Cut(source, "  "+block+" = {\n")
		require.True(t, found, "infra/app/alarms.tf has no %s", block)
		body, _, _ = strings.Cut(body, "\n  }\n")
		for _, m := range regexp.MustCompile(`(?m)^    "?([\w.-]+)"? += `).FindAllStringSubmatch(body, -1) {
			names = append(names, m[1])
		}
		return names
	}
	each := map[string][]string{}
	for _, metric := range keys("counts") {
		each["group"] = append(each["group"], strings.ToLower(metric)+"-<package>")
	}
	each["figure"] = keys("limits")
	each["heartbeat"] = []string{"<schedule>"}
	each["executions"] = []string{"<machine>"}
	var alarms []string
	for _, m := range regexp.MustCompile(`(?s)resource "aws_cloudwatch_metric_alarm" "(\w+)" \{(.*?)\n\}\n`).FindAllStringSubmatch(source, -1) {
		name := regexp.MustCompile(`alarm_name +=\s"\$\{local\.prefix\}-([^"]+)"`).FindStringSubmatch(m[2])
		require.NotNil(t, name, "the alarm %s has no name of the deployment", m[1])
		if !strings.Contains(name[1], "${each.key}") {
			alarms = append(alarms, name[1])
			continue
		}
		of := each[m[1]]
		if m[1] == "gateway" {
			for _, g := range regexp.MustCompile(`(?m)^    ([\w-]+) += \{ namespace`).FindAllStringSubmatch(m[2], -1) {
				of = append(of, g[1])
			}
		}
		require.NotEmpty(t, of, "this test does not know what the alarms %s are made of", m[1])
		for _, key := range of {
			alarms = append(alarms, strings.Replace(name[1], "${each.key}", key, 1))
		}
	}
	var explained []string
	for _, row := range cells(section(t, read(t, operations), "## Alarms")) {
		assert.Len(t, row, 4, "the row of %s", row[0])
		if name, isAlarm := strings.CutPrefix(row[0], "`"); isAlarm {
			explained = append(explained, strings.TrimSuffix(name, "`"))
		}
	}
	require.ElementsMatch(t, alarms, explained, "infra/app/alarms.tf, and the table in %s", operations)
}

// The variables and outputs that the document names are those of the tiers.
func TestTheDocumentsVariablesAndOutputsAreThere(t *testing.T) {
	text := read(t, operations)
	table := cells(section(t, text, "### Variables"))
	require.NotEmpty(t, table)
	for _, row := range table {
		tiers := []string{row[1]}
		if row[1] == "all" {
			tiers = []string{"state", "foundation", "data", "app"}
		}
		for _, name := range span.FindAllStringSubmatch(row[0], -1) {
			for _, tier := range tiers {
				assert.Contains(t, read(t, "infra/"+tier+"/variables.tf"), `variable "`+name[1]+`" {`)
			}
		}
	}
	outputs := ""
	for _, name := range paths(t) {
		if matches("infra/*/outputs.tf", name) {
			outputs += read(t, name)
		}
	}
	named := regexp.MustCompile("\\boutput `(\\w+)`").FindAllStringSubmatch(text, -1)
	require.NotEmpty(t, named)
	for _, name := range named {
		assert.Contains(t, outputs, `output "`+name[1]+`" {`)
	}
}

// worth is what an arithmetic expression of the document is: numbers, × ÷ + and parentheses.
func worth(t *testing.T, expression string) float64 {
	t.Helper()
	require.Regexp(t, `^[0-9.,×÷+() ]+$`, expression)
	// Go's own arithmetic of constants: a point makes a division one of numbers and not of integers.
	plain := regexp.MustCompile(`[0-9.]+`).ReplaceAllStringFunc(strings.NewReplacer(",", "", "×", "*", "÷", "/").Replace(expression), func(n string) string {
		if strings.Contains(n, ".") {
			return n
		}
		return n + ".0"
	})
	value, err := types.Eval(token.NewFileSet(), nil, token.NoPos, plain)
	require.NoError(t, err, expression)
	result, _ := constant.Float64Val(constant.ToFloat(value.Value))
	return result
}

func dollars(t *testing.T, text string) float64 {
	t.Helper()
	value, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	require.NoError(t, err)
	return value
}

func same(a, b float64) bool { return math.Abs(a-b) < 0.0051 }

// The cost estimate adds up: each figure is its price times its quantity, each tier its rows, all of it the tiers.
func TestTheCostEstimateAddsUp(t *testing.T) {
	cost := section(t, read(t, operations), "## Cost")
	summary := map[string][]string{}
	before, _, _ := strings.Cut(cost, "\n### ")
	for _, row := range cells(before) {
		summary[row[0]] = row[1:]
	}
	var all, model, turns [3]float64
	for i := range 3 {
		turns[i] = dollars(t, summary["turns a month"][i])
	}
	for _, tier := range []string{"state", "foundation", "data", "app"} {
		var sum [3]float64
		rows := cells(section(t, cost, "### "+strings.ToUpper(tier[:1])+tier[1:]))
		for _, row := range rows[:len(rows)-1] {
			if len(row) != 8 {
				break // the text behind the last table
			}
			for i := range 3 {
				quantity, figure := row[2+2*i], dollars(t, row[3+2*i])
				assert.True(t, same(worth(t, row[1])*worth(t, quantity), figure), "%s, %s: %s × (%s) is not %.2f", tier, row[0], row[1], quantity, figure)
				sum[i] += figure
				if strings.HasPrefix(row[0], "model") || strings.HasPrefix(row[0], "**model") {
					model[i] += figure
				}
			}
		}
		total := rows[len(rows)-1]
		require.Equal(t, tier, total[0])
		for i := range 3 {
			figure := strconv.FormatFloat(sum[i], 'f', 2, 64)
			assert.Contains(t, strings.ReplaceAll(strings.Join(total, "|"), ",", ""), figure, "%s: the sum", tier)
			assert.True(t, same(sum[i], dollars(t, summary[tier][i])), "the overview says %s of %s: it is %s", summary[tier][i], tier, figure)
			all[i] += sum[i]
		}
	}
	for i := range 3 {
		assert.True(t, same(all[i], dollars(t, summary["all"][i])), "all: %s is not %.2f", summary["all"][i], all[i])
		assert.True(t, same(model[i], dollars(t, summary["of it the model"][i])), "the model: %.2f", model[i])
		assert.InDelta(t, (all[i]-model[i])/turns[i], dollars(t, summary["beside the model, a turn"][i]), 0.00006, "a turn")
	}
}

// Its quantities are those of the tiers, and its prices of the model those by which turns are reckoned.
func TestTheCostEstimateIsOfThisDeployment(t *testing.T) {
	quantity, price, reckoned := map[string]float64{}, map[string]float64{}, map[string]string{}
	for _, row := range cells(section(t, read(t, operations), "## Cost")) {
		if len(row) == 8 {
			name, _, _ := strings.Cut(row[0], ":")
			quantity[name], price[name], reckoned[name] = worth(t, row[2]), worth(t, row[1]), row[2]
		}
	}
	count := func(file, pattern string) float64 {
		return float64(len(regexp.MustCompile(pattern).FindAllString(read(t, file), -1)))
	}
	list := func(file, name string) float64 { // the default of a variable that is a list
		m := regexp.MustCompile(`(?s)variable "` + name + `" \{.*?default +=\s\[([^\]]*)\]`).FindStringSubmatch(read(t, file))
		require.NotNil(t, m, name)
		return float64(strings.Count(m[1], ",") + 1)
	}
	assert.InDelta(t, count("infra/foundation/keys.tf", `(?m)^    \w+ += \{ services = `)+1, quantity["KMS keys"], 0, "keys")
	assert.InDelta(t, list("infra/foundation/variables.tf", "interface_endpoints")*2*730, quantity["endpoints, hours"], 0, "endpoints")
	assert.InDelta(t, count("infra/data/secrets.yaml", `Type: AWS::SecretsManager::Secret`)+count("infra/data/knowledge.yaml", `Type: AWS::SecretsManager::Secret`)+1, quantity["secrets"], 0, "secrets")
	assert.InDelta(t, count("infra/app/alarms.tf", `(?m)^    "audit\.[\w.]+" += \{`)+2, quantity["metrics of the logs"], 0, "metrics")

	// An alarm is paid for by each metric that it looks at. A function more does not make the estimate wrong, a tenth more does.
	m := rows(t)
	// errors; figures of the ledger, of schedules, and of what waits; alarms of one metric; gateways; turns; executions
	metrics := float64(len(m.Rows)) + 4 + 1 + 2 + 5 + 4 + 2 + 3
	for _, row := range m.Rows {
		if row.Reserved == nil {
			metrics++
		}
		schedules := row.Triggers("schedule")
		if slices.Contains(row.On, "invoke") || len(schedules) > 0 {
			metrics++
		}
		metrics += 2 * float64(len(schedules))
	}
	assert.InDelta(t, metrics, quantity["alarms, metrics"], metrics/10, "metrics of alarms: it is %v now", metrics)
	assert.Contains(t, reckoned["Lambda, million calls"], fmt.Sprintf("(%d × 60 × 730 + ", minutely(m)), "calls a minute: Lambda's two rows")

	id := regexp.MustCompile(`(?s)variable "default_model_id" \{.*?default +=\s"([^"]+)"`).FindStringSubmatch(read(t, "infra/app/variables.tf"))
	var prices struct {
		Models map[string][]struct{ Input, Output float64 }
	}
	require.NoError(t, json.Unmarshal([]byte(read(t, "schema/prices.json")), &prices))
	assert.InDelta(t, price["AgentCore, vCPU-hours"], price["code interpreter, vCPU-hours"], 0, "AgentCore's prices are the same for both")
	assert.InDelta(t, price["AgentCore, GB-hours"], price["code interpreter, GB-hours"], 0)
	of := prices.Models[id[1]]
	require.NotEmpty(t, of, id[1])
	assert.InDelta(t, of[len(of)-1].Input, price["model**, million tokens in"], 0)
	assert.InDelta(t, of[len(of)-1].Output, price["model**, million tokens out"], 0)
}

func minutely(m manifest.Manifest) (n int) {
	for _, row := range m.Rows {
		for _, expression := range row.Triggers("schedule") {
			if expression == "rate(1 minute)" {
				n++
			}
		}
	}
	return n
}

// samconfig.toml is TOML, of commands that SAM has, and finds the tree from where SAM runs.
func TestSAMFindsTheTerraformProject(t *testing.T) {
	settings, err := parseTOML(read(t, "samconfig.toml"))
	require.NoError(t, err)
	require.Equal(t, map[string]map[string]any{
		"":                                {"version": 0.1},
		"default.build.parameters":        {"hook_name": "terraform", "terraform_project_root_path": "../.."},
		"default.local_invoke.parameters": {"hook_name": "terraform"},
	}, settings)
	require.Equal(t, ".", path.Join("infra/app", "../.."))
	for _, wrong := range []string{"a", "a = b", "[a", "a = 'b", "a = 1\na = 2", "[a]\n[a]", "a b = 1"} {
		_, err := parseTOML(wrong)
		require.Error(t, err, wrong)
	}
}

// parseTOML reads the part of TOML that samconfig.toml needs: tables, and texts, numbers and booleans in a line each.
func parseTOML(text string) (map[string]map[string]any, error) {
	table, settings := "", map[string]map[string]any{"": {}}
	head := regexp.MustCompile(`^\[([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)\]$`)
	entry := regexp.MustCompile(`^([A-Za-z0-9_-]+) *= *(.+)$`)
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		wrong := func(why string) error { return fmt.Errorf("line %d: %s: %s", i+1, why, line) }
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if m := head.FindStringSubmatch(line); m != nil {
			if table = m[1]; settings[table] != nil {
				return nil, wrong("the table is there twice")
			}
			settings[table] = map[string]any{}
			continue
		}
		m := entry.FindStringSubmatch(line)
		if m == nil {
			return nil, wrong("neither a table nor a setting")
		}
		if _, twice := settings[table][m[1]]; twice {
			return nil, wrong("the setting is there twice")
		}
		var value any
		if err := json.Unmarshal([]byte(m[2]), &value); err != nil { // a text, number or boolean of TOML's is JSON's, as we write them
			return nil, wrong("not a value")
		}
		settings[table][m[1]] = value
	}
	return settings, nil
}
