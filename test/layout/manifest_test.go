package layout_test

import (
	"go/ast"
	"maps"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/functions"
	"github.com/agentplatform/agentplatform/pkg/manifest"
)

// camel is a constructor's name (SendMessage), snake the name of its file (send_message), of the function send-message.
func camel(name string) (out string) {
	for word := range strings.SplitSeq(name, "-") {
		out += strings.ToUpper(word[:1]) + word[1:]
	}
	return out
}

func snake(name string) string { return strings.ReplaceAll(name, "-", "_") }

// One function is one row, one folder functions/<package>/<name>, one entry of functions.Table.
func TestARowIsAFolderIsATableEntry(t *testing.T) {
	var named, folders, mains []string
	for _, row := range rows(t).Rows {
		assert.Regexp(t, `^[a-z]+(-[a-z]+)*$`, row.Name, "a function's name is kebab-case")
		named = append(named, row.Name)
		folders = append(folders, path.Join("functions", row.Package, row.Name))
	}
	for _, s := range sources(t) {
		if s.ast.Name.Name == "main" && strings.HasPrefix(s.path, "functions/") {
			mains = append(mains, s.folder())
		}
	}
	require.ElementsMatch(t, folders, mains, "rows of routes.json against folders with a main")
	require.ElementsMatch(t, named, slices.Collect(maps.Keys(functions.Table)), "rows of routes.json against functions/table.go")
}

// A main only says which function it is, and which adapters stand behind its needs:
// launch.Lambda("send-message", thread.SendMessage, cloud.DB, appsync.Publish, awslambda.Invoke).
func TestAMainOnlyNamesItsFunction(t *testing.T) {
	for _, row := range rows(t).Rows {
		name := path.Join("functions", row.Package, row.Name, "main.go")
		text := read(t, name)
		assert.LessOrEqual(t, strings.Count(text, "\n"), 18, "%s has nothing to decide: keep it to 18 lines", name)
		assert.Contains(t, text, `launch.Lambda("`+row.Name+`", `+row.Package+"."+camel(row.Name)+adaptersFor(row.Needs)+")", name)
	}
}

// adapters is what stands behind the needs that begin so, in the order in which a main names them; service is the package of the SDK that it brings.
var adapters = []struct{ adapter, needs, service string }{
	{"cloud.DB", `^db$`, ""},
	{"cloud.Reader", `^db:reader$`, ""},
	{"cloud.Ledger", `^db:ledger$`, ""},
	{"secretsmanager.Owner", `^db:owner$`, "secretsmanager"},
	{"bedrock.Model", `^model$`, "bedrockruntime"},
	{"bedrock.Guardrail", `^guardrail$`, "bedrockruntime"},
	{"appsync.Publish", `^publish$`, ""}, // one signed request, without an SDK
	{"awslambda.Invoke", `^invoke:`, "lambda"},
	{"awslambda.Call", `^fields$`, "lambda"},
	{"ses.Mail", `^mail$`, "sesv2"},
	{"sns.Push", `^push:`, "sns"},
	{"kms.Sign", `^sign(:public)?$`, "kms"},
	{"s3.Objects", `^object:`, "s3"},
	{"cognito.Identity", `^identity$`, "cognitoidentityprovider"},
	{"agentcore.Runtimes", `^runtime$`, "bedrockagentcore"},
	{"codeinterpreter.Sandbox", `^sandbox$`, "bedrockagentcore"},
	{"ssm.ToolSecrets", `^secret:tools$`, "ssm"},
	{"ssm.IntegrationSecrets", `^secret:(integrations|webhooks)(:|$)`, "ssm"},
	{"ssm.ConnectionSecrets", `^secret:connections$`, "ssm"},
	{"scheduler.Schedules", `^clock$`, "scheduler"},
	{"stepfunctions.Workflow", `^workflow:`, "sfn"},
	{"secretsmanager.Secrets", `^(page-key|audit|api-secret)$`, "secretsmanager"},
}

func adaptersFor(needs []string) (list string) {
	for _, a := range adapters {
		if slices.ContainsFunc(needs, regexp.MustCompile(a.needs).MatchString) {
			list += ", " + a.adapter
		}
	}
	return list
}

// The constructor of send-message in package thread is thread.SendMessage, in functions/thread/send_message.go. A noun's package exports
// nothing else.
func TestAConstructorIsNamedAfterItsFunction(t *testing.T) {
	for _, row := range rows(t).Rows {
		if constructor, ok := functions.Table[row.Name]; ok {
			want := module + "/functions/" + row.Package + "." + camel(row.Name)
			assert.Equal(t, want, runtime.FuncForPC(reflect.ValueOf(constructor).Pointer()).Name(), "functions/table.go, entry %s", row.Name)
		}
		assert.NotNil(t, constructorOf(t, row), "functions/%s/%s.go declares %s", row.Package, snake(row.Name), camel(row.Name))
	}
	for _, s := range sources(t) {
		if filepath.Dir(s.folder()) != "functions" || s.test() {
			continue
		}
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.IsExported() {
				assert.Equal(t, camel(strings.ReplaceAll(strings.TrimSuffix(path.Base(s.path), ".go"), "_", "-")), f.Name.Name,
					"%s: functions/ holds what can be called by name; anything else belongs to pkg/", s.path)
			}
		}
	}
}

// constructorOf is the row's constructor, as written in its file; nil when it is not there.
func constructorOf(t *testing.T, row manifest.Row) *ast.FuncDecl {
	for _, s := range sources(t) {
		if s.path != path.Join("functions", row.Package, snake(row.Name)+".go") {
			continue
		}
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == camel(row.Name) {
				return f
			}
		}
	}
	return nil
}

// uses is what each method of handler.Env needs. Signal gives a test's crash points, which no deployment has.
var uses = map[string][]string{
	"DB":            {"db"},
	"Reader":        {"db:reader"},
	"Ledger":        {"db:ledger"},
	"Owner":         {"db:owner"},
	"Model":         {"model"},
	"Guardrail":     {"guardrail"},
	"Publish":       {"publish"},
	"Operators":     {"operators"},
	"PageKey":       {"page-key"},
	"Invoke":        {"invoke:"}, // and the name of the function
	"Outbox":        {"audit", "invoke:drain-outbox"},
	"EmissionKey":   {"audit"},
	"Sign":          {"sign"},
	"PublicKey":     {"sign:public"},
	"Audit":         {"object:audit:append"},
	"AuditReader":   {"object:audit:read"},
	"Exports":       {"object:exports:write"},
	"ExportsReader": {"object:exports:read"},
	"Identity":      {"identity"},
	"APISecret":     {"api-secret"},
	"DefaultModel":  {"default-model"},
	"Runtimes":      {"runtime"},
	"Sandbox":       {"sandbox"},
	"ToolSecrets":   {"secret:tools"},
	"Push":          {"push:send"},
	"PushDevices":   {"push:devices"},
	"MailReader":    {"object:mail:read"},
	"MailDomain":    {"mail-in"},
	"Clock":         {"clock"},
	"Machines":      {"workflow:machines"},
	"FunctionName":  {"workflow:machines"},
	"Runs":          {"workflow:runs"},
	"RunReader":     {"workflow:runs:read"},
	"Tasks":         {"workflow:tasks"},
	"Egress":        {"egress"},
	"Fields":        {"fields"},
	"Call":          {"invoke:"}, // likewise
	"Mail":          {"mail"},
	"MailFrom":      {"mail-from"},
	"Anchoring":     {"anchoring"},
	"Signal":        nil,

	"KnowledgePassword":        {"db:owner"},
	"IntegrationSecrets":       {"secret:integrations"},
	"IntegrationSecretsReader": {"secret:integrations:read"},
	"WebhookSecrets":           {"secret:webhooks"},
	"WebhookSecretsKeeper":     {"secret:webhooks:keep"},
	"ConnectionSecrets":        {"secret:connections"},
}

func TestTheVocabularyOfNeedsIsTheMethodsOfEnv(t *testing.T) {
	words := map[string]bool{}
	var methods []string
	for _, needs := range uses {
		for _, word := range needs {
			if before, _, of := strings.Cut(word, ":"); of && before == "invoke" {
				word = "invoke:"
			}
			words[word] = true
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(words)), manifest.Needs, "manifest.Needs")
	for _, s := range sources(t) {
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.folder() == "pkg/handler" && f.Recv != nil && f.Name.IsExported() && receiver(f) == "Env" {
				methods = append(methods, f.Name.Name)
			}
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(uses)), methods, "exported methods of handler.Env")
}

func receiver(f *ast.FuncDecl) string {
	typ := f.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if name, ok := typ.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

// A function may do what its row says and nothing else; deployment grants exactly that.
func TestAConstructorUsesExactlyWhatItsRowDeclares(t *testing.T) {
	all := rows(t)
	for _, row := range all.Rows {
		for _, need := range row.Needs {
			word, name, of := strings.Cut(need, "invoke:")
			if of && word == "" {
				_, exists := all.Row(name)
				assert.True(t, exists, "%s: %q names no function", row.Name, need)
				continue
			}
			assert.Contains(t, manifest.Needs, need, "%s: not a word of manifest.Needs", row.Name)
		}
		assert.Len(t, slices.Compact(slices.Sorted(slices.Values(row.Needs))), len(row.Needs), "%s names a need twice", row.Name)
		assert.ElementsMatch(t, needsOf(t, row), row.Needs, "%s: what %s calls on env against needs in routes.json", row.Name, camel(row.Name))
	}
}

// needsOf reads the env.X() calls of a constructor. Env stays in the constructor: given away, nothing could be read off it.
func needsOf(t *testing.T, row manifest.Row) []string {
	f := constructorOf(t, row)
	require.NotNil(t, f, row.Name)
	env := f.Type.Params.List[0].Names[0].Name
	needs := map[string]bool{}
	called := map[*ast.Ident]bool{}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if method, ok := call.Fun.(*ast.SelectorExpr); ok {
				if on, ok := method.X.(*ast.Ident); ok && on.Name == env {
					called[on] = true
					for _, need := range uses[method.Sel.Name] {
						needs[need+argument(call)] = true
					}
				}
			}
		}
		if name, ok := n.(*ast.Ident); ok && name.Name == env {
			assert.True(t, called[name], "%s: env is used for its methods only, and never handed on", row.Name)
		}
		return true
	})
	return slices.Collect(maps.Keys(needs))
}

// argument is the one literal a call has, unquoted.
func argument(call *ast.CallExpr) string {
	if len(call.Args) == 1 {
		if literal, ok := call.Args[0].(*ast.BasicLit); ok {
			return strings.Trim(literal.Value, `"`)
		}
	}
	return ""
}

// triggers is, for each kind of caller: how it is written, by which adapter of pkg/handler the function takes its call, who may stand behind it,
// and how many seconds the caller waits.
var triggers = map[string]struct {
	form     string
	adapters []string
	auth     []manifest.Auth
	waits    manifest.Seconds
}{
	"graphql":  {`^[A-Z]\w*\.[a-z]\w*$`, []string{"Resolver", "Batch"}, []manifest.Auth{manifest.AuthUser, manifest.AuthOperator}, 30},
	"http":     {`^(GET|POST|PUT|PATCH|DELETE) (/[\w.-]+|/\{\w+\})+$`, []string{"HTTP", "REST"}, []manifest.Auth{manifest.AuthUser, manifest.AuthOperator, manifest.AuthSecret, manifest.AuthWebhook, manifest.AuthSignature}, 30},
	"schedule": {`^rate\(\d+ (minute|minutes|hour|hours|day|days)\)$|^cron\(.+\)$`, []string{"Schedule", "Task"}, []manifest.Auth{manifest.AuthInternal}, 900},
	"invoke":   {`^$`, []string{"Task", "Schedule"}, []manifest.Auth{manifest.AuthInternal}, 900},
	"mail":     {`^$`, []string{"Task"}, []manifest.Auth{manifest.AuthInternal}, 900},
	"event":    {`^states$`, []string{"Task"}, []manifest.Auth{manifest.AuthInternal}, 900},
	"call":     {`^$`, []string{"Call"}, []manifest.Auth{manifest.AuthInternal}, 60},
	"state":    {`^[a-z]+(-[a-z]+)*$`, []string{"State"}, []manifest.Auth{manifest.AuthInternal}, 900}, // see workflow_test.go
	"trigger":  {`^cognito:[a-z-]+$`, []string{"Trigger"}, []manifest.Auth{manifest.AuthInternal}, 5},
	"deploy":   {`^(before|after)$`, []string{"Trigger"}, []manifest.Auth{manifest.AuthInternal}, 900},
}

func TestARowFitsItsTriggers(t *testing.T) {
	for _, row := range rows(t).Rows {
		assert.NotEmpty(t, row.On, "%s: nothing calls it", row.Name)
		for _, on := range row.On {
			kind, rest, _ := strings.Cut(on, " ")
			trigger, known := triggers[kind]
			if !assert.True(t, known, "%s: %q is no kind of trigger", row.Name, kind) {
				continue
			}
			assert.Regexp(t, regexp.MustCompile(trigger.form), rest, row.Name)
			assert.Contains(t, trigger.auth, row.Auth, "%s: auth of a %s trigger", row.Name, kind)
			assert.Contains(t, trigger.adapters, adapterOf(t, row), "%s: adapter of a %s trigger", row.Name, kind)
			assert.LessOrEqual(t, row.Timeout, trigger.waits, "%s: the caller does not wait longer", row.Name)
		}
		assert.Equal(t, row.Batch, adapterOf(t, row) == "Batch", "%s: batch in routes.json against handler.Batch in its constructor", row.Name)
		assert.True(t, row.Auth != manifest.AuthOperator || row.Has("operators"), "%s: an operator's function checks that the caller is one", row.Name)
	}
}

// adapterOf is the adapter of pkg/handler that makes the constructor's function: exactly one.
func adapterOf(t *testing.T, row manifest.Row) string {
	f := constructorOf(t, row)
	require.NotNil(t, f, row.Name)
	var found []string
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if on, ok := sel.X.(*ast.Ident); ok && on.Name == "handler" && isAdapter(sel.Sel.Name) {
				found = append(found, sel.Sel.Name)
			}
		}
		return true
	})
	if !assert.Len(t, found, 1, "%s: adapters of pkg/handler in its constructor", row.Name) {
		return ""
	}
	return found[0]
}

func isAdapter(name string) bool {
	for _, trigger := range triggers {
		if slices.Contains(trigger.adapters, name) {
			return true
		}
	}
	return false
}

// The bounds are AWS Lambda's.
func TestARowHasSaneSizes(t *testing.T) {
	for _, row := range rows(t).Rows {
		assert.True(t, row.Timeout >= 1 && row.Timeout <= 900, "%s: timeout %d s", row.Name, row.Timeout)
		assert.True(t, row.Memory >= 128 && row.Memory <= 10240, "%s: memory %d MiB", row.Name, row.Memory)
		assert.True(t, row.Reserved == nil || *row.Reserved >= 1, "%s: reserved concurrency below 1 stops it", row.Name)
	}
}
