package scheduler_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/scheduler"
)

// A function that asks for the clock without knowing what it starts does not start.
func TestAdapter(t *testing.T) {
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "SCHEDULE_GROUP": "stage-tenants", "SCHEDULE_TARGET_ARN": "arn:target",
		"SCHEDULE_DEAD_LETTERS_ARN": "arn:letters"} {
		t.Setenv(name, value)
	}
	p, err := cloud.Ports(t.Context(), cloud.Environment, scheduler.Schedules)
	require.NoError(t, err)
	require.PanicsWithValue(t, "SCHEDULE_ROLE_ARN is not set", func() { p.Clock() })

	t.Setenv("SCHEDULE_ROLE_ARN", "arn:role")
	p, err = cloud.Ports(t.Context(), cloud.Environment, scheduler.Schedules)
	require.NoError(t, err)
	c, _ := p.Clock().(*scheduler.Clock)
	require.Equal(t, []string{"stage-tenants", "arn:target", "arn:role", "arn:letters"}, []string{c.Group, c.Target, c.Role, c.DeadLetters})
}
