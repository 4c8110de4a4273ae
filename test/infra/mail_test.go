package infra_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

const receiptRule = "arn:aws:ses:" + here + ":receipt-rule-set/agentplatform-dev:receipt-rule/agentplatform-dev"

// SES keeps a mail before it calls who takes it, and nobody else may call that; what fails is kept as of any function that nobody waits for.
func TestMailIsReceived(t *testing.T) {
	p := appPlan(t)
	rule := p.keyed("aws_ses_receipt_rule", "mail")[""]
	require.Equal(t, "agentplatform-dev", rule.text("name"))
	require.Equal(t, "agentplatform-dev", rule.text("rule_set_name"))
	require.Equal(t, []any{"in.mail.acme.test"}, rule.Values["recipients"])
	require.Equal(t, []any{true, true, "Require"}, []any{rule.Values["enabled"], rule.Values["scan_enabled"], rule.Values["tls_policy"]})
	kept := rule.block(t, "s3_action")
	require.Equal(t, []any{1., "agentplatform-dev-mail-" + account, "in/"}, []any{kept["position"], kept["bucket_name"], kept["object_key_prefix"]})
	require.Empty(t, kept["kms_key_arn"], "the bucket encrypts: with a key here SES would, in a form that S3 does not decrypt")
	require.Equal(t, "agentplatform-dev", p.keyed("aws_ses_active_receipt_rule_set", "mail")[""].text("rule_set_name"))

	permissions := p.keyed("aws_lambda_permission", "mail")
	calls, _ := rule.Values["lambda_action"].([]any)
	taking := 0
	for _, row := range rows().Rows {
		if len(row.Triggers("mail")) == 0 {
			continue
		}
		taking++
		require.Equal(t, []string{prefix + row.Name, "ses.amazonaws.com", receiptRule, account}, []string{permissions[row.Name].text("function_name"), permissions[row.Name].text("principal"),
			permissions[row.Name].text("source_arn"), permissions[row.Name].text("source_account")})
	}
	require.Len(t, permissions, taking)
	require.Len(t, calls, taking)
	for i, call := range calls {
		call, _ := call.(map[string]any)
		require.Equal(t, []any{float64(i + 2), "Event"}, []any{call["position"], call["invocation_type"]}, "%s", fmt.Sprint(call))
	}
}
