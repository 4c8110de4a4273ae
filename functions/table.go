// Package functions maps each manifest name to the constructor of its function. It is the only place that imports every noun.
package functions

import (
	"github.com/agentplatform/agentplatform/functions/agent"
	"github.com/agentplatform/agentplatform/functions/compliance"
	"github.com/agentplatform/agentplatform/functions/identity"
	"github.com/agentplatform/agentplatform/functions/thread"
	"github.com/agentplatform/agentplatform/functions/turn"
	"github.com/agentplatform/agentplatform/pkg/handler"
)

// Table is every function but the HTTP GraphQL one, which runs the others.
var Table = map[string]handler.Constructor{
	"list-agents":              agent.ListAgents,
	"get-agent":                agent.GetAgent,
	"create-agent":             agent.CreateAgent,
	"update-agent":             agent.UpdateAgent,
	"agent-template":           agent.AgentTemplate,
	"on-agent-activity":        agent.OnAgentActivity,
	"list-threads":             thread.ListThreads,
	"get-thread":               thread.GetThread,
	"create-thread":            thread.CreateThread,
	"update-thread":            thread.UpdateThread,
	"send-message":             thread.SendMessage,
	"thread-messages":          thread.ThreadMessages,
	"thread-agent":             thread.ThreadAgent,
	"thread-turns":             thread.ThreadTurns,
	"on-thread-event":          thread.OnThreadEvent,
	"get-turn":                 turn.GetTurn,
	"dispatch-turn":            turn.DispatchTurn,
	"reap-turns":               turn.ReapTurns,
	"pre-token":                identity.PreToken,
	"compliance-event-by-hash": compliance.ComplianceEventByHash,
}
