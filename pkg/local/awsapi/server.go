package awsapi

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/sign"
)

// Config is what stands behind the operations. All of it is required.
type Config struct {
	AccessKey, Secret string // what requests are signed with

	KeyID     string            // of the one signing key
	Signer    sign.Signer       // that key
	Publisher publish.Publisher // the subscribers
	Lambda    http.Handler      // POST /2015-03-31/functions/…
	Cognito   http.Handler      // X-Amz-Target: AWSCognitoIdentityProviderService.…
}

// New serves the operations.
func New(c Config) http.Handler {
	keys := &keys{c.KeyID, c.Signer}
	mux := http.NewServeMux()
	mux.Handle("POST /2015-03-31/functions/", c.Lambda)
	mux.Handle("POST /graphql", appSync{c.Publisher})
	mux.HandleFunc("POST /{$}", func(w http.ResponseWriter, r *http.Request) {
		switch service, _, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); service {
		case "TrentService":
			keys.ServeHTTP(w, r)
		case "AWSCognitoIdentityProviderService":
			c.Cognito.ServeHTTP(w, r)
		default:
			refuse(w, http.StatusBadRequest, "UnknownOperationException", "this platform has no such service: "+service)
		}
	})
	return signed(c.AccessKey, c.Secret, mux)
}

// refuse is an error as AWS's JSON protocols have it.
func refuse(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("X-Amzn-ErrorType", kind)
	write(w, status, map[string]string{"__type": kind, "message": message})
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client has gone if this fails
}
