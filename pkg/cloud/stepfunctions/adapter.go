package stepfunctions

import (
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// Workflow is the adapter for the needs workflow:machines, workflow:runs, workflow:runs:read and workflow:tasks.
func Workflow(a *cloud.Account, p *handler.Ports) {
	p.Workflow = sync.OnceValue(func() workflow.Engine {
		return Engine{Client: sfn.NewFromConfig(a.AWS()), RoleARN: cloud.Required("WORKFLOW_ROLE_ARN", a.WorkflowRole),
			Prefix: cloud.Required("FUNCTION_PREFIX", a.FunctionPrefix), LogGroupARN: a.WorkflowLogGroup}
	})
}
