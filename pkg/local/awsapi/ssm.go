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

// parameters is Parameter Store with the parameters below some prefixes: encrypted ones, under the one key of their prefix.
type parameters []Secrets

func (p parameters) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Name, Value, Type, KeyID  string
		WithDecryption, Overwrite bool
	}
	if json.NewDecoder(r.Body).Decode(&in) != nil {
		refuse(w, http.StatusBadRequest, "SerializationException", "the request is not the JSON object that the operation takes")
		return
	}
	kept, id, err := p.find(in.Name)
	if err != nil {
		refuse(w, http.StatusBadRequest, "AccessDeniedException", "the platform has no parameters of this name")
		return
	}
	switch r.Header.Get("X-Amz-Target") {
	case "AmazonSSM.GetParameter":
		value, err := kept.Store.Get(r.Context(), id)
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
		if in.Type != "SecureString" || in.KeyID != kept.KeyID || !in.Overwrite || strings.Contains(in.Value, "{{") {
			refuse(w, http.StatusBadRequest, "ValidationException", "the platform keeps parameters of type SecureString under the key "+kept.KeyID+", and replaces them")
			return
		}
		if err := kept.Store.Put(r.Context(), id, in.Value); err != nil {
			p.failed(w, err)
			return
		}
		write(w, http.StatusOK, map[string]any{"Version": 1, "Tier": "Standard"})
	case "AmazonSSM.DeleteParameter":
		if _, err := kept.Store.Get(r.Context(), id); errors.Is(err, secret.ErrMissing) {
			p.failed(w, err)
			return
		}
		if err := kept.Store.Delete(r.Context(), id); err != nil {
			p.failed(w, err)
			return
		}
		write(w, http.StatusOK, map[string]any{})
	default:
		refuse(w, http.StatusBadRequest, "UnknownOperationException", "the platform's Parameter Store has GetParameter, PutParameter and DeleteParameter only")
	}
}

// find is the category and the secret of a parameter's name: <prefix>/<tenant>/<word>/…
func (p parameters) find(name string) (Secrets, secret.ID, error) {
	for _, kept := range p {
		rest, ok := strings.CutPrefix(name, kept.Prefix+"/")
		if words := strings.Split(rest, "/"); ok && len(words) > 1 {
			id, err := secret.Of(words[0], words[1:]...)
			return kept, id, err
		}
	}
	return Secrets{}, secret.ID{}, secret.ErrNoID
}

func (p parameters) failed(w http.ResponseWriter, err error) {
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
