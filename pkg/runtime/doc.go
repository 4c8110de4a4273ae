// Package runtime serves turns over the HTTP contract of Amazon Bedrock AgentCore Runtime: POST /invocations starts a turn and tells of it by
// server-sent events, GET /ping says whether turns run.
//
// Invariants:
//   - A turn belongs to the process: it goes on when the client goes away, and nobody but the database decides whether it may run here.
//   - A client is told `accepted` only when this process holds the turn's lease.
//   - Stop hands every lease back before it returns, so that the turns go on elsewhere at once.
//   - Whoever can invoke can run any tenant's turn, as dispatch-turn can. AgentCore lets only IAM principals in that may InvokeAgentRuntime,
//     and that is dispatch-turn's role; anywhere else the port must be reachable by the dispatcher only.
package runtime
