// Package offline is a small model that needs no network, served over Amazon Bedrock's wire format (Converse and ConverseStream), so
// that the real SDK client is in the path on one machine and in tests. It checks requests as strictly as Bedrock does.
//
// It answers by rules from the thread it is sent, and obeys lines of the last user message that start with a slash:
//
//	/say TEXT                 answer TEXT; \n becomes a newline; several lines are joined
//	/tool NAME {json}         ask for that tool; several lines ask for several; with /say, TEXT comes first
//	/slow MS                  pause MS milliseconds (at most 10,000) before each token after the first
//	/fail throttle [N]        refuse with ThrottlingException (429)
//	/fail validation [N]      refuse with ValidationException (400)
//	/fail stream [N]          stream half of the answer, then a modelStreamErrorException
//	/fail cut [N]             stream half of the answer, then cut the connection
//	/help                     list these lines
//
// It grades when the platform's graders ask it to (an evaluator of type rubric): by the phrases that the rubric quotes, else by what is expected. Lines
// of the rubric script it too. And it summarises the older part of a thread: by quoting it.
//
// /fail without N fails every time; with N the first N identical requests fail and the next is answered. It counts in the newest message
// only: what failed stays in the thread unanswered, and the message after it is to be answered.
//
// It has guardrails too, over the wire format of ApplyGuardrail: see offline.Guardrails.
//
// Invariants: the same request gets the same answer (but for /fail N, latency and request id); a request holds no goroutine of its own
// and ends with its connection; memory is bounded.
package offline
