// Package secretsmanager is AWS Secrets Manager behind package secret: Reader reads secrets, Secrets puts it behind the needs page-key, audit and
// api-secret, and Owner behind db:owner.
package secretsmanager

import (
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/secret"
)

// Secrets is the adapter for the needs page-key, audit and api-secret. A setting X of these is in the environment, or X_SECRET_ID names a secret whose
// whole text it is: read once, when the function starts.
func Secrets(a *cloud.Account, p *handler.Ports) {
	reader := open(a)
	p.PageKey = sync.OnceValue(func() page.Key {
		return page.Key(setting(a, reader, "PAGE_TOKEN_KEY", a.PageTokenKey, a.PageTokenKeyID))
	})
	p.EmissionKey = sync.OnceValue(func() []byte {
		return []byte(setting(a, reader, "AUDIT_EMISSION_KEY", a.EmissionKey, a.EmissionKeyID))
	})
	p.APISecret = sync.OnceValue(func() string {
		return setting(a, reader, "API_AUTH_SECRET", a.APISecret, a.APISecretID)
	})
}

// open gives the one reader of a function: its secrets come over one connection.
func open(a *cloud.Account) func() secret.Reader {
	return sync.OnceValue(func() secret.Reader { return Reader{Client: secretsmanager.NewFromConfig(a.AWS())} })
}

// setting is one that must be hard to guess.
func setting(a *cloud.Account, reader func() secret.Reader, name, value, id string) string {
	from, byID := name, name+"_SECRET_ID"
	if oneOf(name, value, byID, id) == byID {
		from, value = byID+": secret "+id, read(a, reader, byID, id)
	}
	if len(value) < 32 {
		panic(from + " must have at least 32 characters")
	}
	return value
}

// oneOf is the name of the one setting that is there of two ways to say the same.
func oneOf(name, value, other, otherValue string) string {
	switch {
	case value != "" && otherValue != "":
		panic(fmt.Sprintf("%s and %s are both set: take one of them out", name, other))
	case value != "":
		return name
	case otherValue != "":
		return other
	}
	panic(fmt.Sprintf("neither %s nor %s is set", name, other))
}

func read(a *cloud.Account, reader func() secret.Reader, name, id string) string {
	value, err := reader().Get(a.Context(), id)
	if err != nil {
		panic(fmt.Errorf("%s: %w", name, err))
	}
	return value
}
