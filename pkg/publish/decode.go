package publish

import (
	"encoding/json"
	"fmt"
)

// Decode reads a stored event, told apart by its __typename.
func Decode(b []byte) (Event, error) {
	var kind struct {
		Typename string `json:"__typename"`
	}
	if err := json.Unmarshal(b, &kind); err != nil {
		return nil, fmt.Errorf("publish: not an event: %w", err)
	}
	switch kind.Typename {
	case "NewMessageEvent":
		return decode[NewMessage](b)
	case "AgentStatusEvent":
		return decode[AgentStatus](b)
	case "ThreadUpdateEvent":
		return decode[ThreadUpdate](b)
	case "StreamChunkEvent":
		return decode[StreamChunk](b)
	case "AgentActivityEvent":
		return decode[AgentActivity](b)
	}
	return nil, fmt.Errorf("publish: unknown event %q", kind.Typename)
}

func decode[E Event](b []byte) (Event, error) {
	var e E
	err := json.Unmarshal(b, &e)
	return e, err
}
