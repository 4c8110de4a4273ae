package webhook

import (
	"strconv"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

// tag is the entity tag of a webhook: it names the settings, so that calls, which move the counters, do not stand in the way of a change.
func tag(w webhook.Webhook) string { return strconv.Quote(strconv.Itoa(w.Version)) }

// reply answers with a webhook, or why there is none.
func reply(w webhook.Webhook, err error) (handler.Reply, error) {
	if err != nil {
		return handler.Reply{}, err
	}
	return handler.Reply{Headers: map[string]string{"ETag": tag(w)}, Body: w}, nil
}
