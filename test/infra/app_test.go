package infra_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/schema"
)

const (
	prefix = "agentplatform-dev-"
	here   = region + ":" + account
)

// appPlan is the tier as it would be deployed.
func appPlan(t *testing.T) *plan {
	t.Helper()
	return planOf(t, "app")
}

// output is a value of the plan's outputs.
func output[T any](t *testing.T, p *plan, name string) (value T) {
	t.Helper()
	require.NoError(t, json.Unmarshal(p.PlannedValues.Outputs[name].Value, &value), name)
	return value
}

// needsOf is what a function needs, sorted.
func needsOf(t *testing.T, row manifest.Row) []string {
	return slices.Sorted(slices.Values(row.Needs))
}

func async(row manifest.Row) bool {
	return slices.Contains(row.On, "invoke") || slices.Contains(row.On, "mail") || len(row.Triggers("schedule")) > 0 || len(row.Triggers("event")) > 0
}

func TestEveryRowIsAFunction(t *testing.T) {
	p := appPlan(t)
	functions, logs, roles := p.keyed("aws_lambda_function", ""), p.keyed("aws_cloudwatch_log_group", "function"), p.keyed("aws_iam_role", "function")
	code := p.keyed("aws_s3_object", "code")
	named := map[string]bool{}
	for _, role := range roles {
		named[role.text("name")] = true
	}
	roleOf := output[map[string]string](t, p, "function_roles")
	require.Len(t, functions, len(rows().Rows))
	require.Len(t, logs, len(rows().Rows))
	sets, roleOfSet := map[string]string{}, map[string]string{}
	for _, row := range rows().Rows {
		f, log := functions[row.Name], logs[row.Name]
		assert.Equal(t, prefix+row.Name, f.text("function_name"))
		assert.Equal(t, []any{"arm64"}, f.Values["architectures"], row.Name)
		assert.Equal(t, "provided.al2023", f.text("runtime"), row.Name)
		assert.Equal(t, row.Name+".zip", filepath.Base(code[row.Name].text("source")))
		assert.Equal(t, []string{code[row.Name].text("bucket"), code[row.Name].text("key")}, []string{f.text("s3_bucket"), f.text("s3_key")}, row.Name)
		assert.Equal(t, code[row.Name].text("source_hash"), f.text("source_code_hash"), row.Name)
		assert.Equal(t, float64(row.Timeout), f.Values["timeout"], row.Name)
		assert.Equal(t, float64(row.Memory), f.Values["memory_size"], row.Name)
		reserved := float64(-1)
		if row.Reserved != nil {
			reserved = float64(*row.Reserved)
		}
		assert.Equal(t, reserved, f.Values["reserved_concurrent_executions"], row.Name)
		assert.Equal(t, "Active", f.block(t, "tracing_config")["mode"], row.Name)
		assert.Len(t, f.block(t, "vpc_config")["subnet_ids"], 2, row.Name)
		assert.Equal(t, "JSON", f.block(t, "logging_config")["log_format"], row.Name)
		assert.Equal(t, log.text("name"), f.block(t, "logging_config")["log_group"], row.Name)
		assert.Equal(t, "/aws/lambda/"+prefix+row.Name, log.text("name"))
		assert.Positive(t, log.Values["retention_in_days"], row.Name)

		// One role for each distinct set of needs.
		set, role := strings.Join(needsOf(t, row), " "), roleOf[row.Name]
		assert.True(t, named[role], "%s: there is no role %s", row.Name, role)
		if before, ok := roleOfSet[set]; ok {
			assert.Equal(t, before, role, "%s: functions with the same needs have the same role", row.Name)
		}
		if before, ok := sets[role]; ok {
			assert.Equal(t, before, set, "%s: functions with other needs have another role", row.Name)
		}
		roleOfSet[set], sets[role] = role, set
	}
	require.Len(t, roles, len(roleOfSet))
}

// What each need gives: the actions of its statements, and the settings. The words are those of the manifest; infra/app/needs.tf says it for AWS.
var grants = map[string]struct {
	actions  []string
	settings []string
}{
	"db":                   {[]string{"rds-db:connect"}, []string{"DATABASE_AUTH", "DATABASE_URL"}},
	"db:reader":            {[]string{"rds-db:connect"}, []string{"DATABASE_AUTH", "DATABASE_READER_URL"}},
	"db:ledger":            {[]string{"rds-db:connect"}, []string{"DATABASE_AUTH", "DATABASE_LEDGER_URL"}},
	"db:owner":             {[]string{"secretsmanager:GetSecretValue", "kms:Decrypt", "rds-db:connect"}, []string{"DATABASE_OWNER_SECRET_ID", "DATABASE_KNOWLEDGE_SECRET_ID"}},
	"model":                {[]string{"bedrock:InvokeModelWithResponseStream"}, nil},
	"guardrail":            {[]string{"bedrock:ApplyGuardrail"}, nil},
	"runtime":              {[]string{"bedrock-agentcore:InvokeAgentRuntime"}, []string{"AGENT_RUNTIMES"}},
	"publish":              {[]string{"appsync:GraphQL"}, []string{"APPSYNC_URL"}},
	"invoke:":              {[]string{"lambda:InvokeFunction"}, []string{"FUNCTION_PREFIX"}},
	"fields":               {[]string{"lambda:InvokeFunction"}, []string{"FUNCTION_PREFIX"}},
	"operators":            {nil, []string{"SERVICE_PLATFORM_OPERATOR_EMAILS"}},
	"default-model":        {nil, []string{"DEFAULT_MODEL_ID"}},
	"page-key":             {[]string{"secretsmanager:GetSecretValue", "kms:Decrypt"}, []string{"PAGE_TOKEN_KEY_SECRET_ID"}},
	"audit":                {[]string{"secretsmanager:GetSecretValue", "kms:Decrypt"}, []string{"AUDIT_EMISSION_KEY_SECRET_ID"}},
	"api-secret":           {[]string{"secretsmanager:GetSecretValue", "kms:Decrypt"}, []string{"API_AUTH_SECRET_SECRET_ID"}},
	"sign":                 {[]string{"kms:Sign", "kms:GetPublicKey"}, []string{"ANCHOR_SIGNING_KEY_ID"}},
	"sign:public":          {[]string{"kms:GetPublicKey"}, []string{"ANCHOR_SIGNING_KEY_ID"}},
	"anchoring":            {nil, []string{"ANCHOR_ORIGIN", "ANCHOR_INTERVAL", "ANCHOR_RETENTION"}},
	"object:audit:append":  {[]string{"s3:GetObject", "s3:GetObjectRetention", "s3:ListBucket", "s3:PutObject", "s3:PutObjectRetention", "kms:Decrypt", "kms:GenerateDataKey"}, []string{"ANCHOR_BUCKET"}},
	"object:audit:read":    {[]string{"s3:GetObject", "s3:GetObjectRetention", "s3:ListBucket", "kms:Decrypt"}, []string{"ANCHOR_BUCKET"}},
	"object:exports:write": {[]string{"s3:PutObject", "s3:GetObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts", "s3:ListBucket", "kms:Decrypt", "kms:GenerateDataKey"}, []string{"EXPORTS_BUCKET"}},
	"object:exports:read":  {[]string{"s3:GetObject", "kms:Decrypt"}, []string{"EXPORTS_BUCKET"}},
	"identity": {[]string{"cognito-idp:AdminCreateUser", "cognito-idp:AdminGetUser", "cognito-idp:AdminEnableUser", "cognito-idp:AdminDisableUser",
		"cognito-idp:AdminDeleteUser", "cognito-idp:AdminUserGlobalSignOut"}, []string{"USER_POOL_ID"}},
	"sandbox": {[]string{"bedrock-agentcore:StartCodeInterpreterSession", "bedrock-agentcore:InvokeCodeInterpreter", "bedrock-agentcore:StopCodeInterpreterSession"},
		[]string{"CODE_INTERPRETER_ID"}},
	"secret:tools":             {keepSecrets, []string{"TOOL_SECRETS_PREFIX", "TOOL_SECRETS_KEY_ID"}},
	"secret:integrations":      {keepSecrets, []string{"INTEGRATION_SECRETS_PREFIX", "INTEGRATION_SECRETS_KEY_ID"}},
	"secret:integrations:read": {[]string{"ssm:GetParameter", "kms:Decrypt"}, []string{"INTEGRATION_SECRETS_PREFIX", "INTEGRATION_SECRETS_KEY_ID"}},
	"secret:webhooks":          {keepSecrets, []string{"INTEGRATION_SECRETS_PREFIX", "INTEGRATION_SECRETS_KEY_ID"}},
	"secret:webhooks:keep":     {[]string{"ssm:GetParameter", "ssm:PutParameter", "kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey"}, []string{"INTEGRATION_SECRETS_PREFIX", "INTEGRATION_SECRETS_KEY_ID"}},
	"secret:connections":       {keepSecrets, []string{"CONNECTION_SECRETS_PREFIX", "CONNECTION_SECRETS_KEY_ID"}},
	"mail":                     {[]string{"ses:SendEmail", "ses:SendRawEmail"}, nil},
	"mail-from":                {nil, []string{"MAIL_FROM"}},
	"mail-in":                  {nil, []string{"MAIL_DOMAIN"}},
	"object:mail:read":         {[]string{"s3:GetObject", "kms:Decrypt"}, []string{"MAIL_BUCKET"}},
	"push:send":                {[]string{"sns:Publish"}, []string{"PUSH_APPLICATIONS"}},
	"push:devices":             {[]string{"sns:CreatePlatformEndpoint", "sns:SetEndpointAttributes", "sns:DeleteEndpoint"}, []string{"PUSH_APPLICATIONS"}},
	"egress":                   {nil, nil},
	"clock": {[]string{"scheduler:CreateSchedule", "scheduler:UpdateSchedule", "scheduler:GetSchedule", "scheduler:DeleteSchedule", "scheduler:ListSchedules", "iam:PassRole"},
		[]string{"SCHEDULE_GROUP", "SCHEDULE_TARGET_ARN", "SCHEDULE_ROLE_ARN", "SCHEDULE_DEAD_LETTERS_ARN"}},
	"workflow:machines": {[]string{"states:CreateStateMachine", "states:DescribeStateMachine", "states:DeleteStateMachine", "states:ValidateStateMachineDefinition", "iam:PassRole"},
		[]string{"WORKFLOW_ROLE_ARN", "FUNCTION_PREFIX", "WORKFLOW_LOG_GROUP_ARN"}},
	"workflow:runs": {[]string{"states:StartExecution", "states:DescribeExecution", "states:GetExecutionHistory", "states:StopExecution"},
		[]string{"WORKFLOW_ROLE_ARN", "FUNCTION_PREFIX"}},
	"workflow:runs:read": {[]string{"states:DescribeExecution", "states:GetExecutionHistory"}, []string{"WORKFLOW_ROLE_ARN", "FUNCTION_PREFIX"}},
	"workflow:tasks":     {[]string{"states:SendTaskSuccess", "states:SendTaskFailure", "states:SendTaskHeartbeat"}, []string{"WORKFLOW_ROLE_ARN", "FUNCTION_PREFIX"}},
}

// keepSecrets is what a store of secrets takes: parameters, and their key.
var keepSecrets = []string{"ssm:GetParameter", "ssm:PutParameter", "ssm:DeleteParameter", "kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey"}

// running is what every function may do: be traced, be in a VPC, log.
var running = []string{"xray:PutTraceSegments", "xray:PutTelemetryRecords", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "ec2:CreateNetworkInterface",
	"ec2:DeleteNetworkInterface", "ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses", "logs:CreateLogStream", "logs:PutLogEvents"}

func TestNeedsAreTheManifestsWords(t *testing.T) {
	var words []string
	for word := range grants {
		words = append(words, word)
	}
	require.ElementsMatch(t, manifest.Needs, words, "this test's table against manifest.Needs")
	require.ElementsMatch(t, manifest.Needs, output[[]string](t, appPlan(t), "needs"), "infra/app/needs.tf against manifest.Needs")
}

// word is the need's word in the vocabulary, and what stands behind it.
func word(need string) (word, of string) {
	if name, ok := strings.CutPrefix(need, "invoke:"); ok {
		return "invoke:", name
	}
	return need, ""
}

// A function may do what its row says and nothing else.
func TestARoleMayDoWhatItsNeedsSay(t *testing.T) {
	p := appPlan(t)
	policies := map[string]resource{}
	for _, policy := range p.keyed("aws_iam_role_policy", "function") {
		policies[policy.text("role")] = policy
	}
	roleOf := output[map[string]string](t, p, "function_roles")
	sharesWithAsync := map[string]bool{}
	for _, row := range rows().Rows {
		if async(row) {
			sharesWithAsync[roleOf[row.Name]] = true
		}
	}
	for _, row := range rows().Rows {
		role := roleOf[row.Name]
		may := allowed(t, policies[role])
		want, invokes, logins, parameters := slices.Clone(running), []string{}, []string{}, []string{}
		for _, need := range needsOf(t, row) {
			w, of := word(need)
			want = append(want, grants[w].actions...)
			switch w {
			case "invoke:":
				invokes = append(invokes, "arn:aws:lambda:"+here+":function:"+prefix+of)
			case "fields":
				invokes = append(invokes, "arn:aws:lambda:"+here+":function:"+prefix+"*") // TestWhatAnswersFieldsIsTagged
			case "db:owner":
				logins = append(logins, "arn:aws:rds-db:"+here+":dbuser:cluster-ABCDEFGHIJKLMNOPQRSTUVWXYZ/platform_admin")
			case "db", "db:reader", "db:ledger":
				user := map[string]string{"db": "app", "db:reader": "reader", "db:ledger": "ledger"}[w]
				logins = append(logins, "arn:aws:rds-db:"+here+":dbuser:cluster-ABCDEFGHIJKLMNOPQRSTUVWXYZ/agentplatform_"+user)
			case "secret:tools", "secret:integrations", "secret:integrations:read", "secret:connections":
				parameters = append(parameters, "arn:aws:ssm:"+here+":parameter/agentplatform-dev/"+strings.Split(w, ":")[1]+"/*")
			case "secret:webhooks", "secret:webhooks:keep":
				parameters = append(parameters, "arn:aws:ssm:"+here+":parameter/agentplatform-dev/integrations/*/webhooks/*")
			}
		}
		assert.ElementsMatch(t, parameters, on(may, "ssm:GetParameter"), "%s: which secrets of tenants it may read", row.Name)
		assert.ElementsMatch(t, parameters, opens(t, may), "%s: for which of them it may use their key", row.Name)
		if sharesWithAsync[role] {
			want = append(want, "sqs:SendMessage")
		}
		slices.Sort(want)
		assert.Equal(t, slices.Compact(want), actions(may), "%s: what %s may do", row.Name, role)
		assert.ElementsMatch(t, invokes, on(may, "lambda:InvokeFunction"), "%s: which functions it may invoke", row.Name)
		assert.ElementsMatch(t, logins, on(may, "rds-db:connect"), "%s: as whom it may use the database", row.Name)
		if async(row) {
			assert.Equal(t, []string{"arn:aws:sqs:" + here + ":" + prefix + "dead-letters"}, on(may, "sqs:SendMessage"), row.Name)
		}
		assert.Contains(t, on(may, "logs:PutLogEvents"), "arn:aws:logs:"+here+":log-group:/aws/lambda/"+prefix+row.Name+":*")
		if topics := on(may, "appsync:GraphQL"); len(topics) > 0 {
			api := "arn:aws:appsync:" + here + ":apis/planned/types/Mutation/fields/"
			assert.ElementsMatch(t, []string{api + string(publish.ThreadEvents), api + string(publish.AgentActivities)}, topics, row.Name)
		}
	}
}

// allowed are what a role's policy allows; what it denies besides is no matter here.
func allowed(t *testing.T, policy resource) (allowed []statement) {
	t.Helper()
	require.NotEmpty(t, policy.text("policy"), "%s cannot be read in a plan: what it names must be known before", policy.Address)
	for _, s := range statements(t, policy.Values["policy"]) {
		require.NotEmpty(t, s.Action, policy.Address)
		require.NotEmpty(t, s.Resource, "%s: %v", policy.Address, s.Action)
		if s.Effect == "Allow" {
			allowed = append(allowed, s)
		}
	}
	return allowed
}

// opens are the parameters for which a key may be used.
func opens(t *testing.T, may []statement) (parameters []string) {
	t.Helper()
	for _, s := range may {
		var condition struct {
			StringLike struct {
				Parameter list `json:"kms:EncryptionContext:PARAMETER_ARN"`
			}
		}
		if slices.Contains(s.Action, "kms:Decrypt") && s.Condition != nil {
			require.NoError(t, json.Unmarshal(s.Condition, &condition))
			parameters = append(parameters, condition.StringLike.Parameter...)
		}
	}
	return parameters
}

func actions(may []statement) (all []string) {
	for _, s := range may {
		all = append(all, s.Action...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// on are the resources that an action is allowed on.
func on(may []statement, action string) (resources []string) {
	for _, s := range may {
		if slices.Contains(s.Action, action) {
			resources = append(resources, s.Resource...)
		}
	}
	slices.Sort(resources)
	return slices.Compact(resources)
}

// everywhere are the actions for which a service takes no narrower resource than "*".
var everywhere = []string{"xray:PutTraceSegments", "xray:PutTelemetryRecords", "xray:GetSamplingRules", "xray:GetSamplingTargets", "logs:CreateLogDelivery", "logs:GetLogDelivery",
	"logs:UpdateLogDelivery", "logs:DeleteLogDelivery", "logs:ListLogDeliveries", "logs:PutResourcePolicy", "logs:DescribeResourcePolicies", "logs:DescribeLogGroups", "cloudwatch:PutMetricData", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "ecr:GetAuthorizationToken",
	"scheduler:ListSchedules", "states:ValidateStateMachineDefinition", "states:SendTaskSuccess", "states:SendTaskFailure", "states:SendTaskHeartbeat"}

// partly are resources of which a part cannot be said, each with its reason.
var partly = map[string]*regexp.Regexp{
	"network interfaces have their ids from AWS":      regexp.MustCompile(`^arn:aws:ec2:eu-central-1:123456789012:\*/\*$`),
	"the streams of one log group":                    regexp.MustCompile(`^arn:aws:logs:eu-central-1:123456789012:log-group:/aws/lambda/[a-z-]+:\*$`),
	"the API's log group is named after the API":      regexp.MustCompile(`^arn:aws:logs:eu-central-1:123456789012:log-group:/aws/appsync/apis/\*$`),
	"objects of one kind in one bucket":               regexp.MustCompile(`^arn:aws:s3:::agentplatform-dev-(audit-123456789012/(anchors|heads|events)|exports-123456789012/(exports|payloads))/\*$`),
	"documents of all tenants, in one bucket":         regexp.MustCompile(`^arn:aws:s3:::agentplatform-dev-knowledge-123456789012/\*$`),
	"models of a family, where a profile sends turns": regexp.MustCompile(`^arn:aws:bedrock:(\*|eu-central-1)::foundation-model/anthropic\.claude-\*$`),
	"AgentCore puts ten characters behind a name":     regexp.MustCompile(`^arn:aws:bedrock-agentcore:eu-central-1:123456789012:(runtime/agentplatform_dev_runtime|code-interpreter-custom/agentplatform_dev_sandbox)-\*$`),
	"tenants' secrets of one category":                regexp.MustCompile(`^arn:aws:ssm:eu-central-1:123456789012:parameter/agentplatform-dev/(tools/\*|integrations/\*|integrations/\*/webhooks/\*|connections/\*)$`),
	"mails that were received":                        regexp.MustCompile(`^arn:aws:s3:::agentplatform-dev-mail-123456789012/in/\*$`),
	"functions with the tag of those behind fields":   regexp.MustCompile(`^arn:aws:lambda:eu-central-1:123456789012:function:agentplatform-dev-\*$`),
	"devices of one platform application":             regexp.MustCompile(`^arn:aws:sns:eu-central-1:123456789012:endpoint/(APNS|GCM)/agents/\*$`),
	"any log group: the service looks for its own":    regexp.MustCompile(`^arn:aws:logs:eu-central-1:123456789012:log-group:\*$`),
	"log groups of AgentCore's runtimes":              regexp.MustCompile(`^arn:aws:logs:eu-central-1:123456789012:log-group:/aws/bedrock-agentcore/runtimes/\*$`),
	"tenants' schedules, in one group":                regexp.MustCompile(`^arn:aws:scheduler:eu-central-1:123456789012:schedule/agentplatform-dev-tenants/\*$`),
	"machines of tenants' routines, and their runs":   regexp.MustCompile(`^arn:aws:states:eu-central-1:123456789012:(stateMachine:agentplatform-dev-routine-\*|execution:agentplatform-dev-routine-\*:\*)$`),
	"runs of one of the platform's own":               regexp.MustCompile(`^arn:aws:states:eu-central-1:123456789012:execution:agentplatform-dev-[a-z-]+:\*$`),
	"profiles of a family's models":                   regexp.MustCompile(`^arn:aws:bedrock:eu-central-1:123456789012:inference-profile/[a-z]+\.anthropic\.claude-\*$`),
}

func TestNoPolicySaysMoreThanItMust(t *testing.T) {
	policies := 0
	for _, policy := range appPlan(t).resources() {
		if policy.Type != "aws_iam_role_policy" {
			continue
		}
		policies++
		assert.LessOrEqual(t, len(policy.text("policy")), 10240, "%s: IAM takes no longer policy", policy.Address)
		for _, s := range allowed(t, policy) {
			for _, action := range s.Action {
				assert.NotContains(t, action, "*", "%s: an action is named", policy.Address)
				assert.False(t, strings.HasPrefix(action, "s3:Delete") || strings.HasPrefix(action, "s3:Bypass"), "%s: nobody deletes objects: %s", policy.Address, action)
				for _, r := range s.Resource {
					if r == "*" {
						assert.Contains(t, everywhere, action, "%s: a resource is named", policy.Address)
					} else if strings.Contains(r, "*") {
						assert.True(t, fitsOne(r), "%s: %s on %s", policy.Address, action, r)
					}
				}
			}
		}
	}
	require.Greater(t, policies, 3)
	for _, typ := range []string{"aws_iam_role_policy_attachment", "aws_iam_policy", "aws_iam_user", "aws_iam_access_key"} {
		assert.Empty(t, appPlan(t).keyed(typ, ""), "a role's policy is one document that is read here")
	}
}

func fitsOne(text string) bool {
	for _, pattern := range partly {
		if pattern.MatchString(text) {
			return true
		}
	}
	return false
}

// A function has the settings that its needs use and no others, under names that pkg/cloud reads. A secret is named by its ARN, never given.
func TestAFunctionHasTheSettingsOfItsNeeds(t *testing.T) {
	reads := map[string]bool{}
	settings := reflect.TypeFor[cloud.Settings]()
	for i := range settings.NumField() {
		name, options, _ := strings.Cut(settings.Field(i).Tag.Get("env"), ",")
		if options == "unset" {
			name += "_SECRET_ID"
		}
		reads[name] = true
	}
	functions := appPlan(t).keyed("aws_lambda_function", "")
	for _, row := range rows().Rows {
		var want, has []string
		for _, need := range needsOf(t, row) {
			w, _ := word(need)
			want = append(want, grants[w].settings...)
		}
		variables, _ := functions[row.Name].block(t, "environment")["variables"].(map[string]any)
		assert.Equal(t, "agentplatform/dev", variables["METRICS_NAMESPACE"], "pkg/launch reads it, whatever the function needs")
		for name, value := range variables {
			if name == "METRICS_NAMESPACE" {
				continue
			}
			has = append(has, name)
			text := fmt.Sprint(value)
			assert.True(t, reads[name], "%s: pkg/cloud reads no %s", row.Name, name)
			switch {
			case name == "DATABASE_OWNER_SECRET_ID":
				assert.Contains(t, text, ":secret:agentplatform-dev/database/owner-")
			case name == "DATABASE_KNOWLEDGE_SECRET_ID":
				assert.Contains(t, text, ":secret:agentplatform-dev/database/knowledge-")
			case strings.HasSuffix(name, "_SECRET_ID"):
				assert.Regexp(t, "^agentplatform-dev/[a-z]+/"+strings.TrimSuffix(name, "_SECRET_ID")+"$", text, "a secret's name")
			case name == "DATABASE_AUTH":
				assert.Equal(t, "iam", text, row.Name)
			case strings.HasPrefix(name, "DATABASE_"):
				config, err := pgconn.ParseConfig(text)
				if assert.NoError(t, err, row.Name) {
					assert.Empty(t, config.Password, "%s: a token is the password", name)
					assert.Empty(t, config.Fallbacks, "%s: never without TLS", name)
					if assert.NotNil(t, config.TLSConfig, name) {
						assert.False(t, config.TLSConfig.InsecureSkipVerify, "%s: the server is who it says it is", name)
					}
				}
			case name == "ANCHOR_INTERVAL", name == "ANCHOR_RETENTION":
				_, err := time.ParseDuration(text)
				assert.NoError(t, err, name)
			}
		}
		slices.Sort(want)
		assert.ElementsMatch(t, slices.Compact(want), has, "%s: settings", row.Name)
	}
}

func TestEveryHTTPRowHasItsRoute(t *testing.T) {
	p := appPlan(t)
	routes, integrations, permissions := p.keyed("aws_apigatewayv2_route", ""), p.keyed("aws_apigatewayv2_integration", ""), p.keyed("aws_lambda_permission", "http")
	count, methods := 0, []any{"OPTIONS"}
	for _, row := range rows().Rows {
		for _, key := range row.Triggers("http") {
			count++
			if method, _, _ := strings.Cut(key, " "); !slices.Contains(methods, any(method)) {
				methods = append(methods, method)
			}
			route := routes[key]
			byToken := row.Auth == manifest.AuthUser || row.Auth == manifest.AuthOperator
			want := "NONE"
			if byToken {
				want = "JWT"
			}
			assert.Equal(t, want, route.text("authorization_type"), "%s, auth %s", key, row.Auth)
			assert.Equal(t, byToken, route.Change.Unknown["authorizer_id"] == true, "%s has the authorizer when it has one", key)
			assert.Equal(t, row.Name, integrations[row.Name].text("description"))
			assert.Equal(t, "2.0", integrations[row.Name].text("payload_format_version"))
			assert.Equal(t, prefix+row.Name, permissions[row.Name].text("function_name"))
			assert.Equal(t, "apigateway.amazonaws.com", permissions[row.Name].text("principal"))
		}
	}
	require.Len(t, routes, count)
	require.Len(t, p.keyed("aws_apigatewayv2_authorizer", ""), 1)
	jwt := p.keyed("aws_apigatewayv2_authorizer", "users")[""].block(t, "jwt_configuration")
	require.Equal(t, "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_a1B2c3D4e", jwt["issuer"])
	require.Equal(t, []any{"1example23456789"}, jwt["audience"])
	cors := p.keyed("aws_apigatewayv2_api", "")[""].block(t, "cors_configuration")
	require.ElementsMatch(t, methods, cors["allow_methods"])
	require.ElementsMatch(t, []any{"etag", "location", "retry-after", "x-request-id"}, cors["expose_headers"])
	stage := p.keyed("aws_apigatewayv2_stage", "")[""]
	require.Positive(t, stage.block(t, "default_route_settings")["throttling_rate_limit"])
	var logged map[string]string
	require.NoError(t, json.Unmarshal([]byte(stage.block(t, "access_log_settings")["format"].(string)), &logged))
	for _, value := range logged {
		assert.NotContains(t, value, "query", "a token may be in it")
		assert.NotContains(t, value, "header", "a token may be in it")
	}
}

// Who may call the functions behind the schema's fields may call what has their tag, and that is these functions and no others.
func TestWhatAnswersFieldsIsTagged(t *testing.T) {
	p := appPlan(t)
	answers := map[string]bool{}
	for _, row := range rows().GraphQL().Rows {
		answers[row.Name] = true
	}
	functions := p.keyed("aws_lambda_function", "")
	require.Len(t, functions, len(rows().Rows))
	for name, f := range functions {
		tags, _ := f.Values["tags"].(map[string]any)
		require.Equal(t, answers[name], tags["Answers"] == "graphql", name)
	}
	asked := 0
	for _, policy := range p.resources() {
		if policy.Type != "aws_iam_role_policy" {
			continue
		}
		for _, s := range allowed(t, policy) {
			if slices.ContainsFunc(s.Resource, func(r string) bool { return strings.HasPrefix(r, "arn:aws:lambda:") && strings.HasSuffix(r, "*") }) {
				asked++
				require.Len(t, s.Resource, 1, policy.Address)
				require.JSONEq(t, `{"StringEquals":{"aws:ResourceTag/Answers":"graphql"}}`, string(s.Condition), policy.Address)
			}
		}
	}
	require.Equal(t, 2, asked, "AppSync, and the function that answers GraphQL over HTTP")
}

func TestEveryGraphQLRowHasItsResolver(t *testing.T) {
	p := appPlan(t)
	fields, sources := p.keyed("aws_appsync_resolver", "field"), p.keyed("aws_appsync_datasource", "function")
	byField := rows().ByGraphQL()
	require.Len(t, fields, len(byField))
	for field, row := range byField {
		r := fields[field]
		assert.Equal(t, field, r.text("type")+"."+r.text("field"))
		assert.Equal(t, strings.ReplaceAll(row.Name, "-", "_"), r.text("data_source"), field)
		assert.Equal(t, r.text("data_source"), sources[row.Name].text("name"), field)
		assert.Equal(t, "APPSYNC_JS", r.block(t, "runtime")["name"], field)
		assert.Equal(t, row.Batch, r.Values["max_batch_size"] != float64(0), field)
	}
	api := p.keyed("aws_appsync_graphql_api", "")[""]
	require.Equal(t, schema.SDL, api.text("schema"))
	require.Equal(t, "AMAZON_COGNITO_USER_POOLS", api.text("authentication_type"))
	require.Equal(t, "AWS_IAM", api.block(t, "additional_authentication_provider")["authentication_type"])
	require.Equal(t, true, api.Values["xray_enabled"])
	require.Equal(t, true, api.block(t, "log_config")["exclude_verbose_content"])

	// The code that is deployed knows the batched fields without an environment; test/appsync runs it.
	var batched []string
	for field, row := range byField {
		if row.Batch {
			batched = append(batched, field)
		}
	}
	slices.Sort(batched)
	names, err := json.Marshal(strings.Join(batched, ","))
	require.NoError(t, err)
	code := strings.Replace(readFile(t, "schema", "graphql", "resolver.js"), "ctx.env.BATCH_FIELDS", string(names), 1)
	for field := range byField {
		require.Equal(t, code, fields[field].text("code"), "one resolver for all")
	}
}

func readFile(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	require.NoError(t, err)
	return string(text)
}

// The publish mutations are the topics of pkg/publish.
func TestEventsArePublishedByMutations(t *testing.T) {
	publishing := appPlan(t).keyed("aws_appsync_resolver", "publish")
	require.Len(t, publishing, 2)
	for _, topic := range []publish.Topic{publish.ThreadEvents, publish.AgentActivities} {
		r := publishing[string(topic)]
		require.Equal(t, []string{"Mutation", string(topic), "none"}, []string{r.text("type"), r.text("field"), r.text("data_source")})
		require.Equal(t, readFile(t, "schema", "graphql", "publish.js"), r.text("code"))
	}
}

func TestWhatRunsByItself(t *testing.T) {
	p := appPlan(t)
	schedules, retries, loops, hooks := p.keyed("aws_scheduler_schedule", ""), p.keyed("aws_lambda_function_event_invoke_config", ""), p.keyed("aws_lambda_function_recursion_config", ""),
		p.keyed("aws_lambda_permission", "trigger")
	scheduled, asyncs, itself, triggers, beats := 0, 0, 0, 0, p.keyed("aws_cloudwatch_metric_alarm", "heartbeat")
	var called []string
	for _, row := range rows().Rows {
		for i, expression := range row.Triggers("schedule") {
			scheduled++
			key := row.Name
			if i > 0 {
				key = fmt.Sprintf("%s-%d", row.Name, i+1)
			}
			assert.Equal(t, expression, schedules[key].text("schedule_expression"), row.Name)
			called = append(called, "arn:aws:lambda:"+here+":function:"+prefix+row.Name)
			if strings.HasPrefix(expression, "rate(") {
				assert.Equal(t, "breaching", beats[key].text("treat_missing_data"), "%s: silence is an alarm", row.Name)
			}
		}
		if async(row) {
			asyncs++
			assert.Equal(t, float64(2), retries[row.Name].Values["maximum_retry_attempts"], row.Name)
			destination := retries[row.Name].block(t, "destination_config")
			assert.Len(t, destination["on_failure"], 1, "%s: what fails is kept", row.Name)
		}
		if row.Has("invoke:" + row.Name) {
			itself++
			assert.Equal(t, "Allow", loops[row.Name].text("recursive_loop"), row.Name)
		}
		for _, hook := range row.Triggers("trigger") {
			triggers++
			assert.Equal(t, prefix+row.Name, hooks[hook].text("function_name"))
			assert.Equal(t, "arn:aws:cognito-idp:eu-central-1:123456789012:userpool/eu-central-1_a1B2c3D4e", hooks[hook].text("source_arn"))
		}
	}
	require.Len(t, schedules, scheduled)
	require.Len(t, retries, asyncs)
	require.Len(t, loops, itself)
	require.Len(t, hooks, triggers)
	require.ElementsMatch(t, called, on(allowed(t, p.keyed("aws_iam_role_policy", "scheduler")[""]), "lambda:InvokeFunction"))
	require.Equal(t, true, p.keyed("aws_sqs_queue", "dead_letters")[""].Values["sqs_managed_sse_enabled"])
}

// Alarms and the dashboard look at what is there: each figure that the ledger and turns tell of, and no other; each function, once a count; the one topic.
func TestAlarmsLookAtWhatIsThere(t *testing.T) {
	p := appPlan(t)
	figures := func(expression string, folder ...string) (found []string) {
		sources, err := filepath.Glob(filepath.Join(append([]string{root}, folder...)...))
		require.NoError(t, err)
		for _, name := range sources {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			for _, one := range regexp.MustCompile(expression).FindAllStringSubmatch(string(text), -1) {
				found = append(found, one[1])
			}
		}
		slices.Sort(found)
		return slices.Compact(found)
	}
	require.Equal(t, figures(`\bfigure\(ctx, "([a-z.]+)"`, "pkg", "audit", "ledger", "*.go"), figures(`(?m)^    "(audit\.[a-z.]+)" += \{`, "infra", "app", "alarms.tf"))
	ofSchedules := figures(`"(schedule\.[a-z]+)"`, "pkg", "schedule", "drift.go")
	require.Equal(t, ofSchedules, figures(`"(schedule\.[a-z]+)"`, "infra", "app", "dashboard.tf"))
	require.Subset(t, ofSchedules, figures(`"(schedule\.[a-z]+)"`, "infra", "app", "alarms.tf"))
	ofIntegrations := `"((?:integrations|tasks)\.[a-z.]+)"`
	outside := slices.Sorted(slices.Values(append(figures(ofIntegrations, "pkg", "integration", "*.go"), figures(ofIntegrations, "pkg", "task", "*.go")...)))
	require.Equal(t, outside, figures(ofIntegrations, "infra", "app", "dashboard.tf"))
	require.Equal(t, slices.DeleteFunc(outside, func(name string) bool { return !strings.HasSuffix(name, ".lateness") }), figures(ofIntegrations, "infra", "app", "alarms.tf"))
	ofTurns := `"(turns|cost|(?:turn|tokens|denials)\.[a-z_]+)`
	told := append(figures(ofTurns+`"`, "pkg", "turn", "observe.go"), figures(ofTurns+`"`, "pkg", "handler", "denied.go")...)
	told = slices.DeleteFunc(told, func(name string) bool { return name == "turn.duration" }) // the phases, all in all: for whoever looks for it
	slices.Sort(told)
	require.Equal(t, slices.Compact(told), figures(ofTurns+`\\?"`, "infra", "app", "dashboard.tf"))
	require.Len(t, p.keyed("aws_cloudwatch_log_metric_filter", "error_lines"), len(rows().Rows))

	counted := map[string]int{}
	for _, alarm := range p.keyed("aws_cloudwatch_metric_alarm", "group") {
		queries, _ := alarm.Values["metric_query"].([]any)
		assert.LessOrEqual(t, len(queries), 11, "%s: an alarm holds ten metrics", alarm.Address)
		for _, q := range queries {
			if metrics, _ := q.(map[string]any)["metric"].([]any); len(metrics) == 1 {
				m := metrics[0].(map[string]any)
				counted[fmt.Sprint(m["metric_name"], " ", m["dimensions"].(map[string]any)["FunctionName"])]++
			}
		}
	}
	for _, row := range rows().Rows {
		assert.Equal(t, 1, counted["Errors "+prefix+row.Name], row.Name)
		assert.Equal(t, map[bool]int{true: 1}[row.Reserved == nil], counted["Throttles "+prefix+row.Name], row.Name)
	}
	for _, alarm := range p.keyed("aws_cloudwatch_metric_alarm", "") {
		assert.NotEmpty(t, alarm.text("alarm_description"), alarm.Address)
		assert.True(t, alarm.Change.Unknown["alarm_actions"] != nil, "%s tells somebody", alarm.Address)
	}
	require.Len(t, p.keyed("aws_budgets_budget", ""), 1)
	require.Len(t, p.keyed("aws_cloudwatch_dashboard", ""), 1)
}

func TestTheConsoleIsReadByItsDistributionOnly(t *testing.T) {
	p := appPlan(t)
	cdn := p.keyed("aws_cloudfront_distribution", "")[""]
	require.Equal(t, "redirect-to-https", cdn.block(t, "default_cache_behavior")["viewer_protocol_policy"])
	require.Equal(t, "index.html", cdn.text("default_root_object"))
	require.Equal(t, true, cdn.Values["is_ipv6_enabled"])
	require.Equal(t, "always", p.keyed("aws_cloudfront_origin_access_control", "")[""].text("signing_behavior"))
}

// Few functions are known by name: the one whose work the runtime does; those whose figures
// are looked at. For any other, nothing is edited here.
func TestAddingAFunctionEditsNoTerraform(t *testing.T) {
	byName := []string{"graphql", "dispatch-turn", "drain-outbox", "publish-anchor", "watch-ledger"}
	files, err := filepath.Glob(filepath.Join(root, "infra", "app", "*.tf"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, row := range rows().Rows {
			if !slices.Contains(byName, row.Name) {
				assert.NotContains(t, string(text), `"`+row.Name+`"`, file)
			}
		}
	}
}

// What cannot be deployed is refused before anything is made, with a line that says what to do.
func TestWhatCannotBeDeployedIsRefused(t *testing.T) {
	t.Parallel()
	from := filepath.Dir(folder(t, ""))
	top := t.TempDir()
	require.NoError(t, os.CopyFS(top, os.DirFS(from)))
	tier, dist := filepath.Join(top, "infra", "app"), filepath.Join(top, "dist")
	require.NoError(t, zipped(dist, "bygone"))
	require.NoError(t, os.Remove(filepath.Join(dist, "get-agent.zip")))

	routes := strings.Replace(string(schema.Routes), `"functions": [`, `"functions": [
    {"name": "greet", "package": "greet", "on": ["invoke", "telegram /greet", "event rain", "state welcome"], "auth": "everybody", "needs": ["db", "invoke:nobody", "telepathy"], "timeout": 10, "memory": 256},`, 1)
	require.NoError(t, os.WriteFile(filepath.Join(top, "schema", "routes.json"), []byte(routes), 0o600))

	aws := newIdentityOnly()
	defer aws.Close()
	out, err := terraform(t.Context(), tier, []string{"AWS_ENDPOINT_URL=" + aws.URL}, "plan", "-json", "-input=false", "-lock=false", "-var-file=tests/terraform.tfvars",
		"-var=dist=../../dist", "-var=agent_runtime=true", "-var=stage=test", "-var=default_model_id=meta.llama3-3-70b-instruct-v1:0")
	require.Error(t, err)
	var said []string
	for line := range strings.Lines(out) {
		var m struct {
			Type       string
			Diagnostic struct{ Severity, Detail string }
		}
		if !strings.HasPrefix(line, "{") {
			continue // what terraform says of its own settings, before it begins
		}
		require.NoError(t, json.Unmarshal([]byte(line), &m), line)
		if m.Type == "diagnostic" {
			said = append(said, m.Diagnostic.Severity+": "+m.Diagnostic.Detail)
		}
	}
	require.ElementsMatch(t, []string{
		"error: No zip in ../../dist for get-agent, greet: run `make build`. If it still says so, schema/routes.json has a row for which there is no functions/<package>/<name>/main.go.",
		"error: schema/routes.json names needs that nothing is granted for: invoke:nobody, telepathy. Say in needs.tf what each may do and which settings it takes; an invoke: names a row.",
		"error: schema/routes.json has triggers that this tier does not make: telegram /greet, event rain. It knows graphql, http, schedule, invoke, call, trigger, state, event states, mail and deploy.",
		"error: schema/routes.json has tasks of state machines that are not there: welcome (greet). The machine auto-thread is schema/workflow/auto_thread.asl.json; routine are those of tenants' routines.",
		"error: foundation is of agentplatform-dev in eu-central-1, account 123456789012; this is agentplatform-test in eu-central-1, account 123456789012.",
		"error: schema/routes.json: auth of greet must be user, operator, internal, api-secret, webhook-token or signature.",
		"error: runtime_image_tag is missing: push the agent runtime's image to 123456789012.dkr.ecr.eu-central-1.amazonaws.com/agentplatform-dev/agent-runtime and name its tag, for example runtime_image_tag = \"1.4.0\"; or let turns run in a function: agent_runtime = false.",
		"error: default_model_id meta.llama3-3-70b-instruct-v1:0 is not among model_ids: no function could invoke it.",
		"warning: ../../dist holds zips of functions that schema/routes.json does not have: bygone.zip. `make build` removes them.",
	}, said)
}
