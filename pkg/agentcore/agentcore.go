// Package agentcore hands turns to agent runtimes: processes of cmd/agent-runtime that keep to the HTTP contract of Amazon Bedrock AgentCore
// Runtime (POST /invocations, answered by server-sent events).
//
// Invariants:
//   - A nil error of Start means that the turn needs nothing more: the runtime holds its lease, or there was nothing to do. After an error the
//     turn may still have been taken; the database decides who runs it, so starting it again is harmless.
//   - A turn belongs to the runtime once it was accepted. Whoever started it may go away.
//   - One thread is one session. AgentCore gives each session a microVM of its own, so no two tenants share one.
package agentcore

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Runtime starts turns in one agent runtime. It is safe for concurrent use.
type Runtime interface {
	// Start hands over a turn (turn.Dispatch, as JSON) and returns when the runtime has accepted it. session is at least 33 characters.
	Start(ctx context.Context, session string, dispatch []byte) error
}

// Runtimes are a deployment's runtimes by selector, the word that an agent or its template names.
type Runtimes map[string]Runtime

// SessionHeader carries the session, in a call and in what AgentCore passes on of it.
const SessionHeader = "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id"

// Refused is a runtime's answer that it cannot take the turn now; it stays queued.
type Refused struct{ Reason Reason }

func (r *Refused) Error() string {
	return "agentcore: the runtime refused the turn: " + string(r.Reason)
}

// Target is where a runtime is: at a URL, or at AgentCore.
type Target struct {
	URL       string // "http://127.0.0.1:8080"; empty: at AgentCore
	ARN       string // of the agent runtime
	Qualifier string // the runtime's endpoint; empty: AgentCore's DEFAULT
}

var (
	selector   = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)
	runtimeARN = regexp.MustCompile(`^(arn:aws[a-z-]*:bedrock-agentcore:[a-z0-9-]+:[0-9]{12}:runtime/[A-Za-z0-9_-]+)(?:/runtime-endpoint/([A-Za-z][A-Za-z0-9_]*))?$`)
)

// IsSelector reports whether a runtime may have this selector.
func IsSelector(s string) bool { return selector.MatchString(s) }

// Parse reads the setting AGENT_RUNTIMES: selector=target, comma-separated. A target is the ARN of an agent runtime or of one of its endpoints,
// or a URL.
func Parse(setting string) (map[string]Target, error) {
	targets := map[string]Target{}
	for entry := range strings.SplitSeq(setting, ",") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		name, at, ok := strings.Cut(entry, "=")
		if !ok || !selector.MatchString(name) {
			return nil, fmt.Errorf("AGENT_RUNTIMES: %q is not selector=target", entry)
		}
		if _, twice := targets[name]; twice {
			return nil, fmt.Errorf("AGENT_RUNTIMES names %q twice", name)
		}
		u, err := url.Parse(at)
		if arn := runtimeARN.FindStringSubmatch(at); arn != nil {
			targets[name] = Target{ARN: arn[1], Qualifier: arn[2]}
		} else if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
			targets[name] = Target{URL: strings.TrimSuffix(at, "/")}
		} else {
			return nil, fmt.Errorf("AGENT_RUNTIMES: %q of %s is neither the ARN of an agent runtime nor an http(s) URL", at, name)
		}
	}
	return targets, nil
}
