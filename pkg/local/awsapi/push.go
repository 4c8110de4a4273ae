package awsapi

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/push"
)

// Applications are SNS's platform applications of this machine, by platform.
var Applications = map[push.Platform]string{
	push.APNS:        application + "APNS/local",
	push.APNSSandbox: application + "APNS_SANDBOX/local",
	push.FCM:         application + "GCM/local",
}

const application = "arn:aws:sns:us-east-1:000000000000:app/"

// pushes is SNS's mobile push, whose endpoints are the carrier's below its application's: arn:…:endpoint/GCM/local/<endpoint>.
type pushes struct{ carrier push.Carrier }

// snsError is an error as the query protocol has it.
type snsError struct{ code, message string }

func (e *snsError) Error() string { return e.code + ": " + e.message }

var (
	errParameter  = &snsError{"InvalidParameter", "Invalid parameter: the platform takes what its own push notifications are made of"}
	errNoEndpoint = &snsError{"InvalidParameter", "Invalid parameter: TargetArn Reason: No endpoint found for the target arn specified"}
)

func (s pushes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ParseForm() != nil {
		failed(w, http.StatusBadRequest, errParameter)
		return
	}
	action := r.PostForm.Get("Action")
	operation := map[string]func(*http.Request, url.Values) (string, error){"CreatePlatformEndpoint": s.create, "SetEndpointAttributes": s.set, "DeleteEndpoint": s.remove,
		"Publish": s.publish}[action]
	if operation == nil {
		failed(w, http.StatusBadRequest, &snsError{"InvalidAction", "the platform's SNS sends push notifications only"})
		return
	}
	result, err := operation(r, r.PostForm)
	var refused *snsError
	switch {
	case errors.As(err, &refused):
		failed(w, http.StatusBadRequest, refused)
	case err != nil:
		slog.Error("a push notification for a function failed", "action", action, "error", err)
		failed(w, http.StatusInternalServerError, &snsError{"InternalError", "the outbox cannot be used"})
	default:
		w.Header().Set("Content-Type", "text/xml")
		_, _ = w.Write([]byte("<" + action + "Response xmlns=\"http://sns.amazonaws.com/doc/2010-03-31/\"><" + action + "Result>" + result + "</" + action + "Result></" + action + "Response>"))
	}
}

func failed(w http.ResponseWriter, status int, e *snsError) {
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(`<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Type>Sender</Type>` + element("Code", e.code) + element("Message", e.message) + `</Error></ErrorResponse>`))
}

func element(name, text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a buffer takes everything
	return "<" + name + ">" + b.String() + "</" + name + ">"
}

func (s pushes) create(r *http.Request, in url.Values) (string, error) {
	for platform, arn := range Applications {
		if arn == in.Get("PlatformApplicationArn") {
			endpoint, err := s.carrier.Register(r.Context(), platform, in.Get("Token"), in.Get("CustomUserData"))
			return element("EndpointArn", below(platform)+endpoint), err
		}
	}
	return "", &snsError{"NotFound", "PlatformApplication does not exist"}
}

// set enables an endpoint, with its own token: the outbox's is always enabled.
func (s pushes) set(r *http.Request, in url.Values) (string, error) {
	platform, endpoint, ok := ours(in.Get("EndpointArn"))
	set := map[string]string{}
	for i := 1; in.Has(entry(i, "key")); i++ {
		set[in.Get(entry(i, "key"))] = in.Get(entry(i, "value"))
	}
	if !ok || set["Enabled"] != "true" || len(set) != 3 {
		return "", errParameter
	}
	same, err := s.carrier.Register(r.Context(), platform, set["Token"], set["CustomUserData"])
	if err == nil && same != endpoint {
		err = errParameter
	}
	return "", err
}

func entry(i int, part string) string { return "Attributes.entry." + strconv.Itoa(i) + "." + part }

func (s pushes) remove(r *http.Request, in url.Values) (string, error) {
	_, endpoint, ok := ours(in.Get("EndpointArn"))
	if !ok {
		return "", errParameter
	}
	return "", s.carrier.Unregister(r.Context(), endpoint)
}

// publish sends what the payload says, if the platform itself would write it so.
func (s pushes) publish(r *http.Request, in url.Values) (string, error) {
	platform, endpoint, ok := ours(in.Get("TargetArn"))
	if !ok {
		return "", errNoEndpoint
	}
	var forms map[string]string
	if in.Get("MessageStructure") != "json" || json.Unmarshal([]byte(in.Get("Message")), &forms) != nil {
		return "", errParameter
	}
	payload := forms[strings.Split(Applications[platform], "/")[1]]
	n, err := read(platform, payload)
	for i := 1; in.Has("MessageAttributes.entry." + strconv.Itoa(i) + ".Name"); i++ {
		if at := "MessageAttributes.entry." + strconv.Itoa(i); in.Get(at+".Name") == "AWS.SNS.MOBILE.APNS.COLLAPSE_ID" {
			n.DedupeID = in.Get(at + ".Value.StringValue")
		}
	}
	if err != nil || forms["default"] == "" || string(push.Payload(platform, n)) != payload {
		return "", errParameter
	}
	if err = s.carrier.Send(r.Context(), endpoint, n); errors.Is(err, push.ErrGone) {
		err = errNoEndpoint
	}
	return element("MessageId", endpoint), err
}

// read is the notification that a payload was made of.
func read(platform push.Platform, payload string) (n push.Notification, err error) {
	type shown struct{ Title, Body, Tag string }
	if platform == push.FCM {
		var in struct {
			FCMV1Message struct {
				Message struct {
					Notification shown
					Data         map[string]string
					Android      struct{ Notification shown }
				}
			}
		}
		err = json.Unmarshal([]byte(payload), &in)
		m := in.FCMV1Message.Message
		return push.Notification{Title: m.Notification.Title, Body: m.Notification.Body, Data: m.Data, DedupeID: m.Android.Notification.Tag}, err
	}
	all := map[string]json.RawMessage{}
	var aps struct{ Alert shown }
	if err = errors.Join(json.Unmarshal([]byte(payload), &all), json.Unmarshal(all["aps"], &aps)); err != nil {
		return n, err
	}
	delete(all, "aps")
	n = push.Notification{Title: aps.Alert.Title, Body: aps.Alert.Body, Data: map[string]string{}}
	for name, raw := range all {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return n, err
		}
		n.Data[name] = text
	}
	return n, nil
}

// below is how the ARNs of a platform's endpoints begin.
func below(platform push.Platform) string {
	return strings.Replace(Applications[platform], ":app/", ":endpoint/", 1) + "/"
}

// ours is the platform and the endpoint of an ARN.
func ours(arn string) (push.Platform, string, bool) {
	for platform := range Applications {
		if endpoint, ok := strings.CutPrefix(arn, below(platform)); ok && strings.HasPrefix(endpoint, "local-"+string(platform)+"-") {
			return platform, endpoint, true
		}
	}
	return "", "", false
}
