package channel

import (
	"bytes"
	"encoding/json"
)

// slackSecret are the members of a delivery of Slack's by which one could pass for Slack, or act in its name.
var slackSecret = map[string]bool{"token": true, "action_token": true, "trigger_id": true, "response_url": true}

// redact leaves a delivery as it is, but for what is secret. What cannot be read could have secrets anywhere.
func (slack) redact(body []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var whole any
	if d.Decode(&whole) != nil || d.More() {
		return nil
	}
	strip(whole)
	return compact(whole)
}

// compact is JSON for people: without what a browser would need.
func compact(value any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(value) != nil {
		return nil
	}
	return bytes.TrimSpace(b.Bytes())
}

func strip(value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if slackSecret[name] {
				delete(v, name)
				continue
			}
			strip(member)
		}
	case []any:
		for _, member := range v {
			strip(member)
		}
	}
}

// redact keeps what is read of a delivery: the whole is some 20 KiB of addresses, and would not be kept at all.
func (github) redact(body []byte) []byte {
	var d githubDelivery
	if json.Unmarshal(githubBody(body), &d) != nil {
		return nil
	}
	return compact(d)
}

// redact keeps a body as it is: what is in it is between the sender and the tenant.
func (generic) redact(body []byte) []byte { return body }
