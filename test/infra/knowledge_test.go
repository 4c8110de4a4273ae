package infra_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// Bedrock reaches the database by the Data API and a secret, whose value is in no state.
func TestTheDatabaseIsReadyForAKnowledgeBase(t *testing.T) {
	t.Parallel()
	p := planOf(t, "data")
	require.Equal(t, true, p.only(t, "aws_rds_cluster").Values["enable_http_endpoint"])
	stack := p.keyed("aws_cloudformation_stack", "knowledge")[""]
	require.Equal(t, "agentplatform-dev-knowledge", stack.text("name"))
	require.Equal(t, map[string]any{"Prefix": "agentplatform-dev", "DatabaseKey": keyARNs()["database"]}, stack.Values["parameters"])
	template := stack.text("template_body")
	for _, says := range []string{`Name: !Sub "${Prefix}/database/knowledge"`, "KmsKeyId: !Ref DatabaseKey", "GenerateStringKey: password", "PasswordLength: 48", "ExcludePunctuation: true", "SecretArn:"} {
		require.Contains(t, template, says)
	}
	found := regexp.MustCompile(`SecretStringTemplate: '(.*)'`).FindStringSubmatch(template)
	require.NotNil(t, found)
	var secret map[string]string
	require.NoError(t, json.Unmarshal([]byte(found[1]), &secret))
	require.Equal(t, map[string]string{"username": postgres.KnowledgeRole}, secret)
}

// What Bedrock is told is what migrations make, and its role may do what a knowledge base does, with these things and no others.
func TestTheKnowledgeBase(t *testing.T) {
	p := appPlan(t)
	const (
		cluster = "arn:aws:rds:" + here + ":cluster:agentplatform-dev"
		secret  = "arn:aws:secretsmanager:" + here + ":secret:agentplatform-dev/database/knowledge-AbCdEf"
		bucket  = "arn:aws:s3:::agentplatform-dev-knowledge-" + account
		model   = "arn:aws:bedrock:" + region + "::foundation-model/amazon.titan-embed-text-v2:0"
	)
	base := p.only(t, "aws_bedrockagent_knowledge_base").Values
	require.Equal(t, model, base.at("knowledge_base_configuration", "vector_knowledge_base_configuration", "embedding_model_arn"))
	database := func(name ...string) any {
		return base.at(append([]string{"storage_configuration", "rds_configuration"}, name...)...)
	}
	require.Equal(t, []any{cluster, "agentplatform", secret}, []any{database("resource_arn"), database("database_name"), database("credentials_secret_arn")})

	// The table, its columns and their types.
	ddl, err := os.ReadFile(filepath.Join(root, "pkg/postgres/migrate/knowledge.go"))
	require.NoError(t, err)
	table := regexp.MustCompile(`(?s)create table (\S+) \((.*?)\n\);`).FindStringSubmatch(string(ddl))
	require.NotNil(t, table)
	require.Equal(t, table[1], database("table_name"))
	for field, kind := range map[string]string{"primary_key_field": "uuid primary key", "vector_field": "vector(1024)", "text_field": "text", "metadata_field": "json"} {
		column, _ := database("field_mapping", field).(string)
		require.NotEmpty(t, column, field)
		require.Regexp(t, `(?m)^  `+column+` +`+regexp.QuoteMeta(kind)+`,?$`, table[2], field)
	}

	documents := p.only(t, "aws_bedrockagent_data_source").Values
	require.Equal(t, "DELETE", documents["data_deletion_policy"])
	require.Equal(t, []any{bucket, account}, []any{documents.at("data_source_configuration", "s3_configuration", "bucket_arn"),
		documents.at("data_source_configuration", "s3_configuration", "bucket_owner_account_id")})

	may := allowed(t, p.keyed("aws_iam_role_policy", "knowledge")[""])
	for action, resources := range map[string][]string{
		"bedrock:InvokeModel":            {model},
		"rds:DescribeDBClusters":         {cluster},
		"rds-data:ExecuteStatement":      {cluster},
		"rds-data:BatchExecuteStatement": {cluster},
		"s3:ListBucket":                  {bucket},
		"s3:GetObject":                   {bucket + "/*"},
		"secretsmanager:GetSecretValue":  {secret},
		"kms:Decrypt":                    {keyARNs()["database"], keyARNs()["objects"]},
	} {
		require.Equal(t, resources, on(may, action), action)
	}
	require.Len(t, actions(may), 8)
	for _, s := range may {
		if slices.Contains(s.Action, "kms:Decrypt") {
			require.Contains(t, string(s.Condition), `"kms:ViaService"`)
			require.Contains(t, string(s.Condition), `"kms:EncryptionContext:`)
		}
	}
	trust := statements(t, p.keyed("aws_iam_role", "knowledge")[""].Values["assume_role_policy"])
	require.Len(t, trust, 1)
	require.JSONEq(t, `{"Service": "bedrock.amazonaws.com"}`, string(trust[0].Principal))
	require.JSONEq(t, `{"StringEquals": {"aws:SourceAccount": "`+account+`"}, "ArnLike": {"aws:SourceArn": "arn:aws:bedrock:`+here+`:knowledge-base/*"}}`, string(trust[0].Condition))
	require.Equal(t, secret, p.keyed("aws_lambda_function", "")["migrate"].block(t, "environment")["variables"].(map[string]any)["DATABASE_KNOWLEDGE_SECRET_ID"])
}

// The table is there before Bedrock looks for it: the knowledge base waits for the migrations, and those are called again when their settings change.
func TestTheKnowledgeBaseComesAfterItsTable(t *testing.T) {
	text := readFile(t, "infra", "app", "knowledge.tf")
	_, base, found := strings.Cut(text, `resource "aws_bedrockagent_knowledge_base" "documents" {`)
	require.True(t, found)
	base, _, _ = strings.Cut(base, "\n}\n")
	require.Contains(t, base, "depends_on = [aws_iam_role_policy.knowledge, aws_lambda_invocation.before]")
	triggers, _ := appPlan(t).keyed("aws_lambda_invocation", "before")["migrate"].Values["triggers"].(map[string]any)
	require.Regexp(t, "^[0-9a-f]{64}$", triggers["settings"])
}
