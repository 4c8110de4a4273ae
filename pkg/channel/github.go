package channel

import (
	"regexp"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/provider"
)

// github is a repository of GitHub, or all of an organization: whatever a webhook there sends.
//
// What holds:
//
//   - A comment, an issue, a pull request or a review that mentions the agent says something; a conversation is an issue or a pull request with all of its
//     comments. Only what mentions the agent is heard, also where a conversation goes on: people talk to each other there, too.
//   - A mention in code, in a quote or in an HTML comment is none. What is edited or deleted, what an app writes, and what the platform has posted is nothing to do.
//   - Whether somebody may ask is decided by what GitHub says of author and repository (config.allow), because anybody with an account can comment on a public
//     repository. GitHub tells webhooks CONTRIBUTOR of a member of the organization who conceals that: who is not heard for that reason makes the membership
//     public, or becomes a collaborator. Nobody else is let in for their sake: a contributor is whoever had one commit taken.
//   - GitHub signs the body and neither the time nor the headers. So an old delivery can be sent again under another id: the message's own id is in the body, and
//     by that it is taken once, for as long as keys are kept.
//   - A reply is one comment, which ends in a hidden marker with the reply's id. A marker counts only in a comment of the account that the token is of.
type github struct{}

const githubAPI = "https://api.github.com"

// Verify: HMAC-SHA256 over the body. There is no time in it, and the older SHA-1 signature is no signature.
func (github) Verify(in Inbound, secret string) error {
	given, ok := strings.CutPrefix(in.Header("X-Hub-Signature-256"), "sha256=")
	mac := provider.MAC(secret, in.Body)
	if !provider.SameHex(given, mac) || !ok || secret == "" {
		return ErrUnverified
	}
	return nil
}

// marker is what a reply ends in. Whoever reads a comment does not see it.
func marker(replyID string) string { return markers + replyID + " -->" }

const markers = "<!-- agentplatform:"

var fullNames = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}/[A-Za-z0-9._-]{1,100}$`)

// repositoryName reports whether s is owner and name of a repository, and nothing else as a part of a URL.
func repositoryName(s string) bool {
	_, name, _ := strings.Cut(s, "/")
	return fullNames.MatchString(s) && strings.Trim(name, ".") != ""
}
