package push

import (
	"bytes"
	"encoding/json"
	"maps"
	"sort"
)

// Payload is a notification as its platform gets it, a JSON object: for APNs Apple's own form (its id travels beside it, as apns-collapse-id), for FCM
// the message of the HTTP v1 API in the wrapper by which SNS knows it. The tag, and not the collapse key, has the device replace what it shows: FCM keeps
// messages of four collapse keys only for a device that is off.
func Payload(p Platform, n Notification) []byte {
	type object = map[string]any
	shown := object{"title": n.Title}
	if n.Body != "" {
		shown["body"] = n.Body
	}
	var payload object
	if p == FCM {
		message := object{"notification": shown}
		if len(n.Data) > 0 {
			message["data"] = n.Data
		}
		if n.DedupeID != "" {
			message["android"] = object{"notification": object{"tag": n.DedupeID}}
		}
		payload = object{"fcmV1Message": object{"message": message}}
	} else {
		payload = make(object, len(n.Data)+1)
		for name, value := range maps.All(n.Data) {
			payload[name] = value
		}
		payload["aps"] = object{"alert": shown, "sound": "default"}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(payload); err != nil {
		panic(err) // strings only
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// fit checks a notification and cuts its body to what all platforms take.
func fit(n Notification) (Notification, error) {
	if err := n.check(); err != nil {
		return n, err
	}
	whole := []rune(n.Body)
	with := func(runes int) Notification {
		cut := n
		if cut.Body = string(whole[:runes]); runes > 0 && runes < len(whole) {
			cut.Body += "…"
		}
		return cut
	}
	fits := func(n Notification) bool {
		return len(Payload(APNS, n)) <= MaxPayload && len(Payload(FCM, n)) <= MaxPayload
	}
	switch {
	case fits(n):
		return n, nil
	case !fits(with(0)):
		return n, invalid("a notification has at most %d bytes beside its body", MaxPayload)
	}
	most := min(len(whole), MaxPayload)
	return with(sort.Search(most, func(runes int) bool { return !fits(with(runes + 1)) })), nil
}
