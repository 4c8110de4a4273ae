package retention_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/retention"
	"github.com/agentplatform/agentplatform/pkg/text"
)

func days(n int) text.Patch[int] { return text.Patch[int]{Set: true, Value: &n} }

func TestPolicy(t *testing.T) {
	w := newWorld(t)
	other := w.neighbour("globex")
	byDefault := retention.Policy{StepsDays: 90, PayloadDays: 90, EvaluationDays: 365}
	require.Equal(t, byDefault, w.policy())

	p, err := w.set(retention.Change{StepsDays: days(1), EvaluationDays: days(retention.MaxDays)})
	require.NoError(t, err)
	require.Equal(t, retention.Policy{StepsDays: 1, PayloadDays: 90, EvaluationDays: 3650}, p)
	p, err = w.set(retention.Change{StepsDays: text.Patch[int]{Set: true}, PayloadDays: days(7)})
	require.NoError(t, err)
	require.Equal(t, retention.Policy{StepsDays: 90, PayloadDays: 7, EvaluationDays: 3650}, p, "null takes the default, what is left out stays")
	require.Equal(t, p, w.policy())
	require.Equal(t, byDefault, other.policy())

	for name, c := range map[string]retention.Change{"stepsDays": {StepsDays: days(0)}, "payloadDays": {PayloadDays: days(-1)}, "evaluationDays": {EvaluationDays: days(3651)}} {
		_, err := w.set(c)
		require.Equal(t, fault.Invalid("%s must be from 1 to 3650", name), err)
	}
	require.Equal(t, p, w.policy())
}
