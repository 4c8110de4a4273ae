package infra_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ---- network

func TestNothingIsReachedFromOutside(t *testing.T) {
	t.Parallel()
	p := planOf(t, "foundation")
	for _, r := range p.resources() {
		switch r.Type {
		case "aws_vpc_security_group_ingress_rule":
			assert.Nil(t, r.Values["cidr_ipv4"], "%s: callers are named by their security group", r.Address)
			assert.Nil(t, r.Values["cidr_ipv6"], r.Address)
			assert.Equal(t, r.Values["from_port"], r.Values["to_port"], "%s: one port", r.Address)
		case "aws_security_group", "aws_default_security_group":
			assert.Empty(t, r.Values["ingress"], "%s: rules are resources of their own", r.Address)
			assert.Empty(t, r.Values["egress"], r.Address)
		case "aws_subnet":
			assert.Equal(t, false, r.Values["map_public_ip_on_launch"], r.Address)
		case "aws_eip":
			assert.Equal(t, "nat", r.Name, "%s: only NAT gateways have public addresses", r.Address)
		case "aws_route":
			assert.Contains(t, []string{"public", "nat"}, r.Name, "%s: the database has no route out", r.Address)
		case "aws_lb", "aws_instance":
			assert.Fail(t, r.Address+" is not of this network")
		}
	}
	require.Len(t, p.of(t, "aws_nat_gateway"), 1, "one NAT gateway by default")
	for _, rule := range p.of(t, "aws_vpc_security_group_egress_rule") {
		if rule.Values["cidr_ipv4"] != nil {
			assert.EqualValues(t, 443, rule.Values["to_port"], "%s: by default out by TLS only", rule.Address)
		}
	}
	subnets := map[any]bool{}
	for _, s := range p.of(t, "aws_subnet") {
		assert.False(t, subnets[s.Values["cidr_block"]], "%s overlaps", s.Address)
		subnets[s.Values["cidr_block"]] = true
	}
}

// ---- keys

func TestKeys(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"foundation", "state"} {
		p := planOf(t, tier)
		aliases := map[string]bool{}
		for _, a := range p.of(t, "aws_kms_alias") {
			aliases[a.Values["name"].(string)] = true
			assert.Regexp(t, `^alias/agentplatform-dev-`, a.Values["name"])
		}
		for _, key := range p.of(t, "aws_kms_key") {
			assert.EqualValues(t, 30, key.Values["deletion_window_in_days"], key.Address)
			signs := key.Values["key_usage"] == "SIGN_VERIFY"
			assert.Equal(t, key.Module == "module.anchor_key", signs, key.Address)
			assert.Equal(t, !signs, key.Values["enable_key_rotation"], "%s: rotated, unless others trust its public half", key.Address)
			if signs {
				assert.Equal(t, "ECC_NIST_P256", key.Values["customer_master_key_spec"])
			}
			for _, s := range statements(t, key.Values["policy"]) {
				if s.Sid == "Administer" {
					for _, action := range s.Action {
						assert.NotRegexp(t, `^kms:(\*|Decrypt|Encrypt|GenerateDataKey.*|ReEncrypt.*|Sign|CreateGrant)`, action, "%s: who administers does not read", key.Address)
					}
					continue
				}
				if s.Sid != "PublicHalf" {
					assert.NotEmpty(t, s.Condition, "%s %s: through what?", key.Address, s.Sid)
				}
			}
		}
		if tier == "foundation" {
			for category := range keyARNs() {
				assert.True(t, aliases["alias/agentplatform-dev-"+category], "category %s has a key of its own", category)
			}
			assert.True(t, aliases["alias/agentplatform-dev-anchor"])
		}
	}
}

// ---- identity pool

func TestIdentityPool(t *testing.T) {
	t.Parallel()
	p := planOf(t, "foundation")
	pool := p.only(t, "aws_cognito_user_pool").Values
	require.Equal(t, "ACTIVE", pool["deletion_protection"])
	require.Equal(t, "OPTIONAL", pool["mfa_configuration"])
	require.Equal(t, true, pool.at("admin_create_user_config", "allow_admin_create_user_only"), "who exists was invited")

	// Every trigger in the manifest is the pool's, by the function's name.
	called := map[string]any{
		"cognito:pre-token":           pool.at("lambda_config", "pre_token_generation_config", "lambda_arn"),
		"cognito:post-authentication": pool.at("lambda_config", "post_authentication"),
	}
	triggers := 0
	for _, row := range rows().Rows {
		for _, on := range row.Triggers("trigger") {
			triggers++
			assert.Equal(t, fmt.Sprintf("arn:aws:lambda:%s:%s:function:agentplatform-dev-%s", region, account, row.Name), called[on], "%s in infra/foundation/identity.tf", on)
		}
	}
	require.Equal(t, len(called), triggers)
	require.Equal(t, "V2_0", pool.at("lambda_config", "pre_token_generation_config", "lambda_version"))

	client := p.only(t, "aws_cognito_user_pool_client").Values
	require.Equal(t, []any{1., 1., 30.}, []any{client["access_token_validity"], client["id_token_validity"], client["refresh_token_validity"]})
	require.Equal(t, map[string]any{"access_token": "hours", "id_token": "hours", "refresh_token": "days"}, client.at("token_validity_units").([]any)[0])
	require.Equal(t, "ENABLED", client["prevent_user_existence_errors"])
	require.Equal(t, []any{"code"}, client["allowed_oauth_flows"])
	require.NotContains(t, client["write_attributes"], "email", "the tenant is found by the address")
}

// ---- buckets

func TestBuckets(t *testing.T) {
	t.Parallel()
	versioned := map[string]bool{"state": true, "skills": true, "knowledge": true, "assets": true, "functions": true, "audit": true, "exports": false, "mail": false}
	keys := map[string]string{"skills": "objects", "knowledge": "objects", "exports": "objects", "assets": "assets", "functions": "objects", "audit": "audit", "mail": "mail"}
	seen := 0
	for _, tier := range []string{"state", "data"} {
		p := planOf(t, tier)
		for _, bucket := range p.of(t, "aws_s3_bucket") {
			name := bucket.Values["bucket"].(string)
			purpose := strings.TrimSuffix(strings.TrimPrefix(name, "agentplatform-dev-"), "-"+account)
			want, known := versioned[purpose]
			require.True(t, known, "%s: which bucket is this?", name)
			seen++
			assert.Equal(t, false, bucket.Values["force_destroy"], name)
			block := p.in(t, bucket.Module, "aws_s3_bucket_public_access_block").Values
			for _, way := range []string{"block_public_acls", "block_public_policy", "ignore_public_acls", "restrict_public_buckets"} {
				assert.Equal(t, true, block[way], "%s %s", name, way)
			}
			assert.Equal(t, "BucketOwnerEnforced", p.in(t, bucket.Module, "aws_s3_bucket_ownership_controls").Values.at("rule", "object_ownership"), name)
			encryption := p.in(t, bucket.Module, "aws_s3_bucket_server_side_encryption_configuration").Values
			assert.Equal(t, "aws:kms", encryption.at("rule", "apply_server_side_encryption_by_default", "sse_algorithm"), name)
			if tier == "data" {
				assert.Equal(t, keyARNs()[keys[purpose]], encryption.at("rule", "apply_server_side_encryption_by_default", "kms_master_key_id"), name)
			}
			status := any(nil)
			for _, v := range p.of(t, "aws_s3_bucket_versioning") {
				if v.Module == bucket.Module {
					status = v.Values.at("versioning_configuration", "status")
				}
			}
			assert.Equal(t, want, status == "Enabled", "%s: versions", name)
			assert.Equal(t, purpose == "audit", bucket.Values["object_lock_enabled"], "%s: lock", name)

			tls := slices.ContainsFunc(statements(t, p.in(t, bucket.Module, "aws_s3_bucket_policy").Values["policy"]), func(s statement) bool {
				return s.Effect == "Deny" && slices.Equal(s.Action, list{"s3:*"}) && len(s.Resource) == 2 && strings.Contains(string(s.Condition), `"aws:SecureTransport":"false"`)
			})
			assert.True(t, tls, "%s: TLS only", name)
		}
	}
	require.Equal(t, len(versioned), seen)
}

func TestAuditBucketIsWrittenOnce(t *testing.T) {
	t.Parallel()
	p := planOf(t, "data")
	const arn = "arn:aws:s3:::agentplatform-dev-audit-" + account
	require.Len(t, p.of(t, "aws_s3_bucket_object_lock_configuration"), 1)
	p.in(t, "module.audit", "aws_s3_bucket_object_lock_configuration")

	cold := map[any]bool{}
	for _, rule := range p.in(t, "module.audit", "aws_s3_bucket_lifecycle_configuration").Values["rule"].([]any) {
		rule := values(rule.(map[string]any))
		assert.Empty(t, rule["expiration"], "nothing expires")
		assert.Empty(t, rule["noncurrent_version_expiration"], "nothing expires")
		if transitions, _ := rule["transition"].([]any); len(transitions) == 0 {
			continue
		}
		assert.EqualValues(t, 90, rule.at("transition", "days"))
		assert.Equal(t, "GLACIER_IR", rule.at("transition", "storage_class"))
		assert.EqualValues(t, 1, rule.at("filter", "and", "object_size_greater_than"), "small objects too")
		cold[rule.at("filter", "and", "prefix")] = true
	}
	require.Equal(t, map[any]bool{"anchors/": true, "events/": true}, cold)

	refused := slices.ContainsFunc(statements(t, p.in(t, "module.audit", "aws_s3_bucket_policy").Values["policy"]), func(s statement) bool {
		return s.Effect == "Deny" && string(s.Principal) == `"*"` && slices.Contains(s.Action, "s3:DeleteObject") && slices.Contains(s.Action, "s3:DeleteObjectVersion") &&
			slices.Equal(s.Resource, list{arn + "/*"}) && s.Condition == nil
	})
	require.True(t, refused, "nobody deletes")
}

func TestExportsAndMailsExpire(t *testing.T) {
	t.Parallel()
	expire := map[string]any{}
	for _, purpose := range []string{"exports", "mail"} {
		for _, rule := range planOf(t, "data").in(t, `module.bucket["`+purpose+`"]`, "aws_s3_bucket_lifecycle_configuration").Values["rule"].([]any) {
			if rule := values(rule.(map[string]any)); rule["id"] == "expire" {
				require.Equal(t, "Enabled", rule["status"])
				expire[purpose] = rule.at("expiration", "days")
			}
		}
	}
	require.Equal(t, map[string]any{"exports": 1., "mail": 30.}, expire)
}

// SES may put mails where they belong and encrypt them, by the receipt rule of this deployment, and nothing else may.
func TestMailsArePutByTheReceiptRule(t *testing.T) {
	t.Parallel()
	const rule = `{"ArnLike":{"aws:SourceArn":"arn:aws:ses:` + region + `:` + account + `:receipt-rule-set/*:receipt-rule/agentplatform-dev"},"StringEquals":{"aws:SourceAccount":"` + account + `"}}`
	given := 0
	for _, s := range statements(t, planOf(t, "data").in(t, `module.bucket["mail"]`, "aws_s3_bucket_policy").Values["policy"]) {
		if s.Effect == "Deny" {
			continue
		}
		given++
		require.Equal(t, list{"s3:PutObject"}, s.Action)
		require.Equal(t, list{"arn:aws:s3:::agentplatform-dev-mail-" + account + "/in/*"}, s.Resource)
		require.JSONEq(t, `{"Service":"ses.amazonaws.com"}`, string(s.Principal))
		require.JSONEq(t, rule, string(s.Condition))
	}
	require.Equal(t, 1, given)
	for _, key := range planOf(t, "foundation").of(t, "aws_kms_key") {
		for _, s := range statements(t, key.Values["policy"]) {
			if strings.Contains(string(s.Principal), "ses.amazonaws.com") {
				given++
				require.Equal(t, `module.key["mail"]`, key.Module)
				require.Equal(t, list{"kms:Decrypt", "kms:GenerateDataKey"}, s.Action)
				require.JSONEq(t, rule, string(s.Condition))
			}
		}
	}
	require.Equal(t, 2, given)
}

// ---- database (the other engine is in infra/data/tests)

func TestDatabase(t *testing.T) {
	t.Parallel()
	p := planOf(t, "data")
	cluster := p.only(t, "aws_rds_cluster").Values
	for name, want := range map[string]any{
		"engine": "aurora-postgresql", "storage_encrypted": true, "kms_key_id": keyARNs()["database"], "backup_retention_period": 7., "deletion_protection": true,
		"skip_final_snapshot": false, "final_snapshot_identifier": "agentplatform-dev-final", "iam_database_authentication_enabled": true,
		"delete_automated_backups": false, "copy_tags_to_snapshot": true,
	} {
		assert.Equal(t, want, cluster[name], name)
	}
	assert.Regexp(t, `^(1[5-9]|[2-9][0-9])\.`, cluster["engine_version"])
	for _, instance := range p.of(t, "aws_rds_cluster_instance") {
		assert.Equal(t, false, instance.Values["publicly_accessible"], instance.Address)
		assert.Equal(t, "db.serverless", instance.Values["instance_class"])
		assert.Equal(t, keyARNs()["database"], instance.Values["performance_insights_kms_key_id"])
	}
	parameters := map[any]any{}
	for _, parameter := range p.only(t, "aws_rds_cluster_parameter_group").Values["parameter"].([]any) {
		parameter := parameter.(map[string]any)
		parameters[parameter["name"]] = parameter["value"]
	}
	assert.Equal(t, "1", parameters["rds.force_ssl"], "TLS only")
	assert.Equal(t, "TLSv1.2", parameters["ssl_min_protocol_version"])
	assert.Equal(t, "0", parameters["log_parameter_max_length"], "what people write is not in the log")
}

// ---- secrets

// unset is how a setting is marked in pkg/cloud that leaves the environment once it is read.
var unset = regexp.MustCompile(`env:"([A-Z_]+),unset"`)

func TestEachSecretSettingHasItsSecret(t *testing.T) {
	t.Parallel()
	code, err := os.ReadFile(filepath.Join(root, "pkg/cloud/cloud.go"))
	require.NoError(t, err)
	template, err := os.ReadFile(filepath.Join(root, "infra/data/secrets.yaml"))
	require.NoError(t, err)
	var outputs map[string]struct {
		Name string `json:"name"`
		ARN  string `json:"arn"`
		Key  string `json:"key_arn"`
	}
	require.NoError(t, json.Unmarshal(planOf(t, "data").PlannedValues.Outputs["secrets"].Value, &outputs))

	made := regexp.MustCompile(`(?s)Name: !Sub "\$\{Prefix\}(/\w+/([A-Z_]+))"\n.*?KmsKeyId: !Ref (\w+)\n\s+GenerateSecretString: \{ PasswordLength: 48, ExcludePunctuation: true \}`).
		FindAllStringSubmatch(string(template), -1)
	inTemplate := map[string][]string{}
	for _, m := range made {
		inTemplate[m[2]] = m
	}
	settings := unset.FindAllStringSubmatch(string(code), -1)
	require.NotEmpty(t, settings)
	count := 0
	for _, s := range settings {
		name := s[1]
		if name == "DATABASE_OWNER_URL" {
			continue // the owner's password is the operator's choice: aws_secretsmanager_secret.database
		}
		count++
		require.Contains(t, inTemplate, name, "infra/data/secrets.yaml makes no secret of %s", name)
		require.Contains(t, outputs, name, "infra/data/secrets.tf does not know %s", name)
		require.Equal(t, "agentplatform-dev"+inTemplate[name][1], outputs[name].Name, "the template and secrets.tf say where %s is", name)
		require.Equal(t, fmt.Sprintf("arn:aws:secretsmanager:%s:%s:secret:%s-??????", region, account, outputs[name].Name), outputs[name].ARN)
		require.Equal(t, map[string]string{"PlatformKey": keyARNs()["platform"], "EmissionKey": keyARNs()["emission"]}[inTemplate[name][3]], outputs[name].Key, name)
	}
	require.Len(t, made, count, "a secret of no setting")
	require.Len(t, outputs, count)
	require.NotEqual(t, outputs["AUDIT_EMISSION_KEY"].Key, outputs["PAGE_TOKEN_KEY"].Key)
}

func TestThePasswordStaysWhereItIsUsed(t *testing.T) {
	t.Parallel()
	p := planOf(t, "data")
	for name, output := range p.PlannedValues.Outputs {
		assert.NotContains(t, string(output.Value), secret, "output %s", name)
		assert.False(t, output.Sensitive, "output %s: an output that must be hidden is one too many", name)
	}
	holders := 0
	for _, r := range p.resources() {
		text, err := json.Marshal(r.Values)
		require.NoError(t, err)
		if strings.Contains(string(text), secret) {
			holders++
			assert.Contains(t, []string{"aws_rds_cluster", "aws_secretsmanager_secret_version"}, r.Type, r.Address)
		}
	}
	require.Positive(t, holders)
	require.Equal(t, keyARNs()["database"], p.only(t, "aws_secretsmanager_secret").Values["kms_key_id"])
}

// ---- everything

func TestLogsAreEncryptedAndEnd(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"foundation", "data"} {
		for _, group := range planOf(t, tier).of(t, "aws_cloudwatch_log_group") {
			assert.NotZero(t, group.Values["retention_in_days"], group.Address)
			if tier == "data" { // known there: an input
				assert.Equal(t, keyARNs()["logs"], group.Values["kms_key_id"], group.Address)
			}
		}
	}
}

// inner are types whose names are those of parts of something that has the deployment's name.
var inner = regexp.MustCompile(`^aws_(appsync_(datasource|resolver)|bedrockagent_data_source|apigatewayv2_(authorizer|stage)|scheduler_schedule|cloudwatch_log_metric_filter)$`)

func TestNamesAndTags(t *testing.T) {
	t.Parallel()
	for _, tier := range tiers {
		for _, r := range planOf(t, tier).resources() {
			if tags, ok := r.Values["tags_all"].(map[string]any); ok {
				assert.Equal(t, "agentplatform", tags["Platform"], r.Address)
				assert.Equal(t, "dev", tags["Stage"], r.Address)
				assert.Equal(t, tier, tags["Tier"], r.Address)
			}
			for _, attribute := range []string{"cluster_identifier", "identifier", "bucket", "domain", "name_prefix"} {
				if name, ok := r.Values[attribute].(string); ok && r.Type != "aws_eip" { // its domain is the network's kind
					assert.True(t, strings.HasPrefix(name, "agentplatform-dev"), "%s is named %s", r.Address, name)
				}
			}
			if name, ok := r.Values["name"].(string); ok && !strings.HasPrefix(r.Type, "aws_iam_role_policy") && !inner.MatchString(r.Type) {
				assert.Regexp(t, `^(alias/|/|/aws/rds/\w+/|/aws/lambda/|/aws/vendedlogs/(states/)?)?agentplatform-dev`, name, r.Address)
			}
		}
	}
}

// TestPoliciesNameWhatTheyAllow: no policy allows every action, or any resource where there is a name for it. In a key's policy "*" is the key.
func TestPoliciesNameWhatTheyAllow(t *testing.T) {
	t.Parallel()
	read := 0
	for _, tier := range []string{"state", "foundation", "data"} { // app's are read in app_test.go
		for _, r := range planOf(t, tier).resources() {
			for _, attribute := range []string{"policy", "assume_role_policy"} {
				if r.Values[attribute] == nil || r.Type == "aws_ecr_lifecycle_policy" { // rules, not statements
					continue
				}
				for _, s := range statements(t, r.Values[attribute]) {
					read++
					if s.Effect == "Deny" {
						continue
					}
					where := r.Address + " " + attribute + " " + s.Sid
					endpoint := r.Type == "aws_vpc_endpoint" // bounds what callers' own policies allow
					assert.False(t, slices.Contains(s.Resource, "*") && r.Type != "aws_kms_key", "%s: any resource", where)
					assert.NotContains(t, s.Action, "*", where)
					for _, action := range s.Action {
						assert.False(t, strings.Contains(action, "*") && !endpoint, "%s: %s", where, action)
					}
					if anyone := strings.Contains(string(s.Principal), `"*"`); anyone {
						assert.True(t, endpoint, "%s: anybody", where)
						named := strings.Contains(string(s.Condition), `"aws:PrincipalAccount":"`+account+`"`) || s.Sid == "ContainerImages"
						assert.True(t, named, "%s: principals of which account?", where)
					}
					if strings.Contains(string(s.Principal), "Service") {
						assert.NotEmpty(t, s.Condition, "%s: a service that acts for whom?", where)
					}
				}
			}
		}
	}
	require.Greater(t, read, 30)
}

// A statement of a policy.
type statement struct {
	Sid, Effect          string
	Action, Resource     list
	Principal, Condition json.RawMessage
}

// list is one string or several.
type list []string

func (l *list) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*l = list{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(l))
}

func statements(t *testing.T, policy any) []statement {
	t.Helper()
	text, ok := policy.(string)
	require.True(t, ok, "the policy is not known before it is made: %v", policy)
	var document struct{ Statement []statement }
	require.NoError(t, json.Unmarshal([]byte(text), &document), text)
	require.NotEmpty(t, document.Statement)
	return document.Statement
}
