package agent

import (
	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/evaluator/grade"
)

// checkEvaluators refuses evaluators that could not rate a turn. Package agent checks all of them but their schemas, for which it would have to link
// what evaluates them.
func checkEvaluators(f agent.SettingFields) error {
	if f.Evaluators.Value == nil {
		return nil
	}
	_, err := grade.CheckAgents(*f.Evaluators.Value)
	return err
}
