package standin

import (
	"encoding/json"
	"net/http"
)

// A definition that is no JSON is refused; what is in it, test/workflow shows by running it.
var states = Service{
	Name:       "Step Functions",
	Operations: "ValidateStateMachineDefinition, ListStateMachineVersions",
	Why:        "checks no definition before it makes a state machine, and knows no versions",
	answers: map[string]answer{
		"states ValidateStateMachineDefinition": func(_ *AWS, w http.ResponseWriter, r *http.Request) {
			text, _ := body(r)["definition"].(string)
			if json.Valid([]byte(text)) {
				reply(w, object{"result": "OK", "truncated": false, "diagnostics": []object{}})
				return
			}
			reply(w, object{"result": "FAIL", "truncated": false, "diagnostics": []object{{"severity": "ERROR", "code": "INVALID_JSON_DESCRIPTION", "message": "the definition is no JSON"}}})
		},
		"states ListStateMachineVersions": func(_ *AWS, w http.ResponseWriter, _ *http.Request) {
			reply(w, object{"stateMachineVersions": []object{}})
		},
	},
}
