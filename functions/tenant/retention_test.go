package tenant_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/tenant"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/retention"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

func TestRetention(t *testing.T) {
	p := handlertest.New(t)
	acme, globex := p.DB.World(t, "acme"), p.DB.World(t, "globex")
	get := func(by tenant.Claims) (retention.Policy, *fault.Error) {
		return handlertest.Call[retention.Policy](t, p, "retention", functions.Retention, by, args{})
	}
	set := func(by tenant.Claims, input args) (retention.Policy, *fault.Error) {
		return handlertest.Call[retention.Policy](t, p, "set-retention", functions.SetRetention, by, args{"input": input})
	}
	owner, admin, member := handlertest.Claims(acme, tenant.Owner), handlertest.Claims(acme, tenant.Admin), handlertest.Claims(acme, tenant.Member)
	byDefault := retention.Policy{StepsDays: 90, PayloadDays: 90, EvaluationDays: 365}

	got, err := get(member)
	require.Nil(t, err)
	require.Equal(t, byDefault, got)
	got, err = set(admin, args{"stepsDays": 30, "payloadDays": 3650})
	require.Nil(t, err)
	require.Equal(t, retention.Policy{StepsDays: 30, PayloadDays: 3650, EvaluationDays: 365}, got)
	got, err = set(owner, args{"stepsDays": nil, "evaluationDays": 1})
	require.Nil(t, err)
	require.Equal(t, retention.Policy{StepsDays: 90, PayloadDays: 3650, EvaluationDays: 1}, got)
	got, err = set(owner, args{})
	require.Nil(t, err)
	require.Equal(t, retention.Policy{StepsDays: 90, PayloadDays: 3650, EvaluationDays: 1}, got)

	for _, input := range []args{{"stepsDays": 0}, {"payloadDays": 3651}, {"stepsDays": 1, "evaluationDays": -1}} {
		_, err = set(owner, input)
		require.NotNil(t, err)
		require.Equal(t, fault.ValidationError, err.Type)
	}
	_, err = set(member, args{"stepsDays": 1})
	require.Equal(t, fault.Forbidden, err.Type)
	_, err = get(stranger)
	require.Equal(t, fault.Forbidden, err.Type)
	after, err := get(owner)
	require.Nil(t, err)
	require.Equal(t, got, after)
	after, err = get(handlertest.Claims(globex, tenant.Owner))
	require.Nil(t, err)
	require.Equal(t, byDefault, after)
}
