package tool

import (
	"context"
	"encoding/json"
)

// AskUser puts a question to the person in the thread. The turn waits; the person's next message is the call's result.
func AskUser() Tool {
	return Tool{
		Name: "ask_user",
		Description: "Asks the person in this conversation a question and waits for the answer, however long that takes. Use it when you cannot go on without " +
			"knowing, not for politeness. One question at a time.",
		Schema: json.RawMessage(`{"type":"object","properties":{
			"question":{"type":"string","minLength":1,"maxLength":4000,"description":"What the person reads, as Markdown."}},
			"required":["question"],"additionalProperties":false}`),
		Idempotent: true,
		Run: func(_ context.Context, c Call) (any, error) {
			var in struct {
				Question string `json:"question"`
			}
			if err := Decode(c.Input, &in); err != nil {
				return nil, err
			}
			return nil, &Asks{in.Question}
		},
	}
}
