package awsapi

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/agentplatform/agentplatform/pkg/secret"
)

// parameters is Parameter Store with the parameters below one prefix: encrypted ones, under one key.
type parameters struct {
	prefix string // without the / at its end
	keyID  string
	store  secret.Store
}

func (p *parameters) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Name, Value, Type, KeyID  string
		WithDecryption, Overwrite bool
	}
	if json.NewDecoder(r.Body).Decode(&in) != nil {
		refuse(w, http.StatusBadRequest, "SerializationException", "the request is not the JSON object that the operation takes")
		return
	}
	id, err := p.id(in.Name)
	if err != nil {
		refuse(w, http.StatusBadRequest, "AccessDeniedException", "the platform has parameters below "+p.prefix+" only")
		return
	}
	switch r.Header.Get("X-Amz-Target") {
	case "AmazonSSM.GetParameter":
		value, err := p.store.Get(r.Context(), id)
		if err != nil {
			p.failed(w, err)
			return
		}
		if !in.WithDecryption {
			refuse(w, http.StatusBadRequest, "ValidationException", "the platform gives parameters decrypted only")
			return
		}
		write(w, http.StatusOK, map[string]any{"Parameter": map[string]any{"Name": in.Name, "Type": "SecureString", "Value": value, "Version": 1,
			"LastModifiedDate": float64(time.Now().Unix())}})
	case "AmazonSSM.PutParameter":
		if in.Type != "SecureString" || in.KeyID != p.keyID || !in.Overwrite || strings.Contains(in.Value, "{{") {
			refuse(w, http.StatusBadRequest, "ValidationException", "the platform keeps parameters of type SecureString under the key "+p.keyID+", and replaces them")
			return
		}
		if err := p.store.Put(r.Context(), id, in.Value); err != nil {
			p.failed(w, err)
			return
		}
		write(w, http.StatusOK, map[string]any{"Version": 1, "Tier": "Standard"})
	case "AmazonSSM.DeleteParameter":
		if _, err := p.store.Get(r.Context(), id); errors.Is(err, secret.ErrMissing) {
			p.failed(w, err)
			return
		}
		if err := p.store.Delete(r.Context(), id); err != nil {
			p.failed(w, err)
			return
		}
		write(w, http.StatusOK, map[string]any{})
	default:
		refuse(w, http.StatusBadRequest, "UnknownOperationException", "the platform's Parameter Store has GetParameter, PutParameter and DeleteParameter only")
	}
}

// id is the secret of a parameter's name: <prefix>/<tenant>/<word>/…
func (p *parameters) id(name string) (secret.ID, error) {
	rest, ok := strings.CutPrefix(name, p.prefix+"/")
	words := strings.Split(rest, "/")
	if !ok || len(words) < 2 {
		return secret.ID{}, secret.ErrNoID
	}
	return secret.Of(words[0], words[1:]...)
}

func (p *parameters) failed(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, secret.ErrMissing):
		refuse(w, http.StatusBadRequest, "ParameterNotFound", "")
	case errors.Is(err, secret.ErrSize), errors.Is(err, secret.ErrNotText):
		refuse(w, http.StatusBadRequest, "ValidationException", "the value cannot be kept")
	default:
		slog.Error("a parameter for a function failed", "error", err)
		refuse(w, http.StatusInternalServerError, "InternalServerError", "the store cannot be used")
	}
}
