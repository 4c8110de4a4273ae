package standin

import "net/http"

// A rule that is deleted stays in its set, which is deleted next.
var ses = Service{
	Name:       "SES",
	Operations: "DeleteReceiptRule",
	Why:        "deletes sets of rules for received mail, and no rule",
	answers: map[string]answer{
		"ses DeleteReceiptRule": func(_ *AWS, w http.ResponseWriter, _ *http.Request) { replyQuery(w, "DeleteReceiptRule", "") },
	},
}
