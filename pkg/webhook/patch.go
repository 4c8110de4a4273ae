package webhook

import (
	"bytes"
	"encoding/json"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// Merged are the settings with a JSON merge patch applied to them (RFC 7396 §2), as JSON: a member that the patch sets to null is gone.
// The secret is not theirs: they are without it.
func (s Settings) Merged(patch []byte) ([]byte, error) {
	now, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	merged, err := mergePatch(now, patch)
	if err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(merged, &members) == nil && members[secretMember] != nil {
		delete(members, secretMember)
		return json.Marshal(members)
	}
	return merged, nil
}

const secretMember = "signing_secret"

func mergePatch(target, patch []byte) ([]byte, error) {
	t, err := readJSON(target)
	if err != nil {
		return nil, err
	}
	p, err := readJSON(patch)
	if err != nil {
		return nil, err
	}
	return json.Marshal(merge(t, p))
}

func merge(target, patch any) any {
	members, object := patch.(map[string]any)
	if !object {
		return patch
	}
	merged, object := target.(map[string]any)
	if !object {
		merged = map[string]any{}
	}
	for name, value := range members {
		if value == nil {
			delete(merged, name)
			continue
		}
		merged[name] = merge(merged[name], value)
	}
	return merged
}

// readJSON keeps numbers as they are written.
func readJSON(raw []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, fault.Invalid("the body is not valid JSON")
	}
	return v, nil
}
