package awsapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/mail"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/push"
	"github.com/agentplatform/agentplatform/pkg/sandbox"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/sign"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// Config is what stands behind the operations. All of it is required.
type Config struct {
	AccessKey, Secret string // what requests are signed with

	KeyID     string            // of the one signing key
	Signer    sign.Signer       // that key
	Publisher publish.Publisher // the subscribers
	Lambda    http.Handler      // POST /2015-03-31/functions/…
	Cognito   http.Handler      // X-Amz-Target: AWSCognitoIdentityProviderService.…

	Secrets []Secrets // Parameter Store's parameters, by category

	InterpreterID string          // of the one code interpreter
	Sandbox       sandbox.Sandbox // what it runs code in, with InterpreterLimits

	Workflow workflow.Engine // what runs Step Functions' state machines
	Machines string          // how the state machines' ARNs begin, the prefix of their names included

	Clock          clock.Clock // what holds EventBridge Scheduler's schedules
	ScheduleGroup  string      // the one group of them
	ScheduleTarget string      // ARN of the one state machine that they start

	Mail     mail.Carrier // who carries SES's mails
	MailFrom string       // their one sender
	Push     push.Carrier // who carries SNS's push notifications
}

// Secrets are the parameters of one category.
type Secrets struct {
	Prefix string       // of their names: /agentplatform-local/tools
	KeyID  string       // of the key that they are kept under
	Store  secret.Store // those parameters
}

// New serves the operations.
func New(c Config) http.Handler {
	keys := &keys{c.KeyID, c.Signer}
	kept, notes := parameters(c.Secrets), pushes{c.Push}
	mux := http.NewServeMux()
	mux.Handle("POST /2015-03-31/functions/", c.Lambda)
	mux.Handle("POST /graphql", appSync{c.Publisher})
	machines := &states{c.Workflow, c.Machines}
	(&interpreter{id: c.InterpreterID, sandbox: c.Sandbox, sessions: map[string]time.Time{}}).routes(mux)
	mux.Handle("POST /v2/email/outbound-emails", emails{c.Mail, c.MailFrom})
	mux.HandleFunc("POST /{$}", func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") { // the query protocol: nobody else speaks it here
			notes.ServeHTTP(w, r)
			return
		}
		switch service, _, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); service {
		case "TrentService":
			keys.ServeHTTP(w, r)
		case "AmazonSSM":
			kept.ServeHTTP(w, r)
		case "AWSStepFunctions":
			machines.ServeHTTP(w, r)
		case "AWSCognitoIdentityProviderService":
			c.Cognito.ServeHTTP(w, r)
		default:
			refuse(w, http.StatusBadRequest, "UnknownOperationException", "this platform has no such service: "+service)
		}
	})
	return signed(c.AccessKey, c.Secret, (&schedules{c.Clock, c.ScheduleGroup, c.ScheduleTarget}).before(mux))
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
