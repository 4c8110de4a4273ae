// Package realtime is local mode's subscription endpoint: the WebSocket protocol of AWS AppSync over an in-process hub, so that Amplify and
// other AppSync clients work unchanged.
//
// Invariants:
//   - Every subscription is verified by its own token (extensions.authorization of its start message), prepared by the executor (which
//     checks the tenant and gives the filter), and filed under exactly one tenant and one subject. A filter that does not name both is
//     refused: nothing can be subscribed to a whole tenant, or to no tenant.
//   - A connection receives events in the order in which they were published, after the start_ack of its subscription and before the complete
//     of its stop. What was published before start_ack is not sent: a client that must not miss anything subscribes first, then reads.
//   - A publisher never waits for a subscriber. Each connection has one queue, bounded in frames and in bytes; one that does not keep up is
//     closed with 1013. Delivery to a live, reading connection is exactly once; over a reconnect there is a gap, which
//     clients fill by the events' numbers (threadEvents).
//   - No subscription outlives its token: when it expires, the connection is closed with 4401. Amplify then reconnects with a fresh token and
//     restores its subscriptions by itself, whereas an error message would end them for good. (AppSync is laxer: it closes after 24 hours.)
//   - A connection is two goroutines, which end together, and Close waits for them.
//
// The messages are AppSync's, as is the wording of its own errors; the errors of the executor keep the API's error types.
// A handshake with a bad token is accepted and answered by connection_error with 401, because that stops Amplify's retries; a refused
// upgrade would be retried for ever.
package realtime
