package stepfunctions_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/stepfunctions"
)

// A function that asks for the engine without knowing where it is does not start.
func TestAdapter(t *testing.T) {
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "eu-central-1", "FUNCTION_PREFIX": "stage-",
		"WORKFLOW_LOG_GROUP_ARN": "arn:aws:logs:eu-central-1:123456789012:log-group:g"} {
		t.Setenv(name, value)
	}
	p, err := cloud.Ports(t.Context(), cloud.Environment, stepfunctions.Workflow)
	require.NoError(t, err)
	require.PanicsWithValue(t, "WORKFLOW_ROLE_ARN is not set", func() { p.Workflow() })
	require.Equal(t, "stage-begin-step", p.FunctionName("begin-step"))

	t.Setenv("WORKFLOW_ROLE_ARN", role)
	p, err = cloud.Ports(t.Context(), cloud.Environment, stepfunctions.Workflow)
	require.NoError(t, err)
	e, _ := p.Workflow().(stepfunctions.Engine)
	require.Equal(t, []string{role, "stage-", "arn:aws:logs:eu-central-1:123456789012:log-group:g", "eu-central-1"}, []string{e.RoleARN, e.Prefix, e.LogGroupARN, e.Client.Options().Region})
}
