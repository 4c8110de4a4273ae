package awsapi

import (
	"crypto/x509"
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/agentplatform/agentplatform/pkg/sign"
)

// keys is KMS with one key.
type keys struct {
	id     string
	signer sign.Signer
}

const algorithm = "ECDSA_SHA_256"

func (k *keys) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		KeyID, MessageType, SigningAlgorithm string
		Message                              []byte
	}
	if json.NewDecoder(r.Body).Decode(&in) != nil {
		refuse(w, http.StatusBadRequest, "SerializationException", "the request is not the JSON object that the operation takes")
		return
	}
	if in.KeyID != k.id {
		refuse(w, http.StatusBadRequest, "NotFoundException", "the platform has the key "+k.id+" only")
		return
	}
	switch r.Header.Get("X-Amz-Target") {
	case "TrentService.GetPublicKey":
		k.public(w, r)
	case "TrentService.Sign":
		if in.MessageType != "DIGEST" || in.SigningAlgorithm != algorithm || len(in.Message) != 32 {
			refuse(w, http.StatusBadRequest, "ValidationException", "the platform signs digests of 32 bytes by "+algorithm)
			return
		}
		signature, err := k.signer.Sign(r.Context(), [32]byte(in.Message))
		if err != nil {
			broken(w, err)
			return
		}
		write(w, http.StatusOK, map[string]any{"KeyId": k.id, "Signature": signature, "SigningAlgorithm": algorithm})
	default:
		refuse(w, http.StatusBadRequest, "UnknownOperationException", "the platform's KMS has Sign and GetPublicKey only")
	}
}

func (k *keys) public(w http.ResponseWriter, r *http.Request) {
	public, err := k.signer.Public(r.Context())
	var der []byte
	if err == nil {
		der, err = x509.MarshalPKIXPublicKey(public)
	}
	if err != nil {
		broken(w, err)
		return
	}
	write(w, http.StatusOK, map[string]any{"KeyId": k.id, "PublicKey": der, "KeyUsage": "SIGN_VERIFY", "KeySpec": "ECC_NIST_P256", "SigningAlgorithms": []string{algorithm}})
}

func broken(w http.ResponseWriter, err error) {
	slog.Error("signing for a function failed", "error", err)
	refuse(w, http.StatusInternalServerError, "KMSInternalException", "the key cannot be used")
}
