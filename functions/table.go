// Package functions maps each manifest name to the constructor of its function. It is the only place that imports every noun.
package functions

import (
	"github.com/agentplatform/agentplatform/functions/agent"
	"github.com/agentplatform/agentplatform/functions/budget"
	"github.com/agentplatform/agentplatform/functions/compliance"
	"github.com/agentplatform/agentplatform/functions/deployment"
	"github.com/agentplatform/agentplatform/functions/evaluation"
	"github.com/agentplatform/agentplatform/functions/graphql"
	"github.com/agentplatform/agentplatform/functions/guardrail"
	"github.com/agentplatform/agentplatform/functions/identity"
	"github.com/agentplatform/agentplatform/functions/ledger"
	"github.com/agentplatform/agentplatform/functions/mail"
	"github.com/agentplatform/agentplatform/functions/schedule"
	"github.com/agentplatform/agentplatform/functions/space"
	"github.com/agentplatform/agentplatform/functions/tenant"
	"github.com/agentplatform/agentplatform/functions/thread"
	"github.com/agentplatform/agentplatform/functions/tool"
	"github.com/agentplatform/agentplatform/functions/turn"
	"github.com/agentplatform/agentplatform/functions/user"
	"github.com/agentplatform/agentplatform/functions/webhook"
	"github.com/agentplatform/agentplatform/pkg/handler"
)

// Table is every function.
var Table = map[string]handler.Constructor{
	"list-agents":               agent.ListAgents,
	"get-agent":                 agent.GetAgent,
	"create-agent":              agent.CreateAgent,
	"update-agent":              agent.UpdateAgent,
	"agent-template":            agent.AgentTemplate,
	"on-agent-activity":         agent.OnAgentActivity,
	"list-threads":              thread.ListThreads,
	"get-thread":                thread.GetThread,
	"create-thread":             thread.CreateThread,
	"update-thread":             thread.UpdateThread,
	"send-message":              thread.SendMessage,
	"thread-messages":           thread.ThreadMessages,
	"thread-agent":              thread.ThreadAgent,
	"thread-turns":              thread.ThreadTurns,
	"on-thread-event":           thread.OnThreadEvent,
	"thread-events":             thread.ThreadEvents,
	"prune-thread-events":       thread.PruneThreadEvents,
	"get-turn":                  turn.GetTurn,
	"turn-steps":                turn.TurnSteps,
	"approve-tool-call":         turn.ApproveToolCall,
	"deny-tool-call":            turn.DenyToolCall,
	"cancel-turn":               turn.CancelTurn,
	"retry-turn":                turn.RetryTurn,
	"dispatch-turn":             turn.DispatchTurn,
	"reap-turns":                turn.ReapTurns,
	"summarize-thread":          turn.SummarizeThread,
	"pre-token":                 identity.PreToken,
	"compliance-event-by-hash":  compliance.ComplianceEventByHash,
	"delete-agent":              agent.DeleteAgent,
	"create-tenant":             tenant.CreateTenant,
	"update-tenant":             tenant.UpdateTenant,
	"invite-user":               user.InviteUser,
	"list-users":                user.ListUsers,
	"disable-user":              user.DisableUser,
	"delete-user":               user.DeleteUser,
	"sign-out":                  identity.SignOut,
	"post-authentication":       identity.PostAuthentication,
	"sign-in-failed":            identity.SignInFailed,
	"add-tool-server":           tool.AddToolServer,
	"remove-tool-server":        tool.RemoveToolServer,
	"update-tool-server":        tool.UpdateToolServer,
	"refresh-tool-server":       tool.RefreshToolServer,
	"approve-server-tools":      tool.ApproveServerTools,
	"tool-server-tools":         tool.ToolServerTools,
	"list-tool-servers":         tool.ListToolServers,
	"update-governance-file":    space.UpdateGovernanceFile,
	"emit-event":                compliance.EmitEvent,
	"compliance-events":         compliance.ComplianceEvents,
	"compliance-event":          compliance.ComplianceEvent,
	"compliance-chain":          compliance.ComplianceChain,
	"compliance-verification":   compliance.ComplianceVerification,
	"compliance-proof":          compliance.ComplianceProof,
	"create-compliance-export":  compliance.CreateComplianceExport,
	"compliance-exports":        compliance.ComplianceExports,
	"compliance-export-link":    compliance.ComplianceExportLink,
	"run-export":                compliance.RunExport,
	"drain-outbox":              ledger.DrainOutbox,
	"publish-anchor":            ledger.PublishAnchor,
	"watch-ledger":              ledger.WatchLedger,
	"list-webhooks":             webhook.ListWebhooks,
	"get-webhook":               webhook.GetWebhook,
	"create-webhook":            webhook.CreateWebhook,
	"update-webhook":            webhook.UpdateWebhook,
	"delete-webhook":            webhook.DeleteWebhook,
	"list-webhook-runs":         webhook.ListWebhookRuns,
	"get-webhook-run":           webhook.GetWebhookRun,
	"test-webhook":              webhook.TestWebhook,
	"invoke-webhook":            webhook.InvokeWebhook,
	"poll-webhook-run":          webhook.PollWebhookRun,
	"open-auto-thread":          schedule.OpenAutoThread,
	"run-auto-turn":             schedule.RunAutoTurn,
	"close-auto-thread":         schedule.CloseAutoThread,
	"sweep-webhook-keys":        webhook.SweepWebhookKeys,
	"set-budget":                budget.SetBudget,
	"list-budgets":              budget.ListBudgets,
	"usage":                     budget.Usage,
	"meter-usage":               budget.MeterUsage,
	"retention":                 tenant.Retention,
	"set-retention":             tenant.SetRetention,
	"prune-turns":               turn.PruneTurns,
	"list-guardrails":           guardrail.ListGuardrails,
	"get-guardrail":             guardrail.GetGuardrail,
	"create-guardrail":          guardrail.CreateGuardrail,
	"update-guardrail":          guardrail.UpdateGuardrail,
	"delete-guardrail":          guardrail.DeleteGuardrail,
	"create-evaluation":         evaluation.CreateEvaluation,
	"update-evaluation":         evaluation.UpdateEvaluation,
	"delete-evaluation":         evaluation.DeleteEvaluation,
	"list-evaluations":          evaluation.ListEvaluations,
	"get-evaluation":            evaluation.GetEvaluation,
	"evaluation-cases":          evaluation.EvaluationCases,
	"start-evaluation-run":      evaluation.StartEvaluationRun,
	"get-evaluation-run":        evaluation.GetEvaluationRun,
	"list-evaluation-runs":      evaluation.ListEvaluationRuns,
	"cancel-evaluation-run":     evaluation.CancelEvaluationRun,
	"evaluation-run-results":    evaluation.EvaluationRunResults,
	"evaluation-run-comparison": evaluation.EvaluationRunComparison,
	"run-evaluation":            evaluation.RunEvaluation,
	"send-mail":                 mail.SendMail,
	"evaluate-turn":             evaluation.EvaluateTurn,
	"graphql":                   graphql.Graphql,
	"migrate":                   deployment.Migrate,
	"bootstrap":                 deployment.Bootstrap,
}
