package channel

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/agentplatform/agentplatform/pkg/provider"
)

// slack is a workspace of Slack, and an app in it: one integration has one.
//
// What holds:
//
//   - A mention and a direct message begin a conversation, which is the Slack thread below that message; who writes in that thread goes on with it, mention or
//     not. A mention in a channel comes as two events, in any order: both say the same.
//   - What bots and the app itself say, edits, deletions, joins and the like are nothing to do. Neither is what somebody of another organization says in a
//     channel that is shared with it: the integration is for the people of its workspace.
//   - A reply is one post. Slack takes 12,000 characters of Markdown in one; what is longer is cut, and says in which thread the whole is: of several posts some
//     could be there and others not, and nobody could tell whether the reply is.
//   - A reply's id is in the metadata of its post, which people do not see, and by which Find finds it.
type slack struct{}

const slackAPI = "https://slack.com/api"

// Verify: HMAC-SHA256 over "v0:<seconds>:<body>".
func (slack) Verify(in Inbound, secret string) error {
	given, ok := strings.CutPrefix(in.Header("X-Slack-Signature"), "v0=")
	at := in.Header("X-Slack-Request-Timestamp")
	mac := provider.MAC(secret, []byte("v0:"+at+":"), in.Body)
	if !provider.SameHex(given, mac) || !ok || !fresh(at, in.Now) || secret == "" {
		return ErrUnverified
	}
	return nil
}

var seconds = regexp.MustCompile(`^[1-9][0-9]{0,10}$`)

// fresh reports whether a time in Unix seconds is as near to now as a signature's must be.
func fresh(at string, now time.Time) bool {
	unix, err := strconv.ParseInt(at, 10, 64)
	return err == nil && seconds.MatchString(at) && now.Sub(time.Unix(unix, 0)).Abs() <= Freshness
}
