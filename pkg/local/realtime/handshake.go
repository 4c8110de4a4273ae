package realtime

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

const subprotocol = "graphql-ws"

// Wanted says whether a request asks for the WebSocket, for a caller that serves HTTP at the same path.
func Wanted(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// token is the token of a handshake: in the subprotocol header-<base64url of JSON> (Amplify 6), else in the query parameter header
// (base64 of JSON; older clients). Neither is "", which a Verifier refuses.
func token(r *http.Request) (string, error) {
	encoded := r.URL.Query().Get("header")
	for _, value := range r.Header.Values("Sec-WebSocket-Protocol") {
		for offer := range strings.SplitSeq(value, ",") {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(offer), "header-"); ok {
				encoded = rest
			}
		}
	}
	if encoded == "" {
		return "", nil
	}
	// Clients differ in alphabet and padding.
	plain, err := base64.RawStdEncoding.DecodeString(strings.NewReplacer("-", "+", "_", "/", "=", "").Replace(encoded))
	if err != nil {
		return "", fault.New(fault.Unauthorized, "the header parameter is not base64")
	}
	var a authorization
	if err := json.Unmarshal(plain, &a); err != nil {
		return "", fault.New(fault.Unauthorized, "the header parameter is not a JSON object")
	}
	return a.Token, nil
}
