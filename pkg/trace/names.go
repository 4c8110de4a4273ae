package trace

// Attributes of the OpenTelemetry semantic conventions for generative AI, version 1.41.0: the last that has them; they go on in a repository of their own, without a release so far.
const (
	OperationName       = "gen_ai.operation.name"
	ProviderName        = "gen_ai.provider.name"
	ConversationID      = "gen_ai.conversation.id" // the thread's public id
	AgentID             = "gen_ai.agent.id"
	AgentName           = "gen_ai.agent.name"
	RequestModel        = "gen_ai.request.model"
	RequestMaxTokens    = "gen_ai.request.max_tokens"
	FinishReasons       = "gen_ai.response.finish_reasons"
	TimeToFirstChunk    = "gen_ai.response.time_to_first_chunk"      // seconds
	InputTokens         = "gen_ai.usage.input_tokens"                // those read from the cache and written to it included
	OutputTokens        = "gen_ai.usage.output_tokens"               //
	CacheReadTokens     = "gen_ai.usage.cache_read.input_tokens"     //
	CacheCreationTokens = "gen_ai.usage.cache_creation.input_tokens" //
	ToolName            = "gen_ai.tool.name"
	ToolCallID          = "gen_ai.tool.call.id"
	ToolType            = "gen_ai.tool.type"
	ErrorType           = "error.type"
)

// Values of OperationName, ProviderName and ToolType.
const (
	InvokeAgent  = "invoke_agent"
	Chat         = "chat"
	ExecuteTool  = "execute_tool"
	Bedrock      = "aws.bedrock"
	FunctionTool = "function"
)

// Attributes of this platform.
const (
	TenantID   = "agentplatform.tenant_id"
	TurnID     = "agentplatform.turn_id"
	RequestID  = "agentplatform.request_id"
	Attempt    = "agentplatform.turn.attempt" // from 1; those that handed the turn back do not count
	TurnStatus = "agentplatform.turn.status"  // how the attempt left the turn; "running": it goes on in another one
	TurnCost   = "agentplatform.turn.cost_usd"
	ToolStatus = "agentplatform.tool.status" // ok, error, denied, timeout; waiting: for a person
)
