package standin

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"strings"
)

// Keys that sign are P-256 and sign digests, as infra/ makes them; a key's half of the two is here from its first use on, all else of it is moto's.
var kms = Service{
	Name:       "KMS",
	Operations: "Sign, GetPublicKey",
	Why:        "hashes a digest once more before it signs, so that nobody can verify the signature",
	answers: map[string]answer{
		"kms Sign": func(a *AWS, w http.ResponseWriter, r *http.Request) {
			asked := body(r)
			text, _ := asked["Message"].(string)
			digest, err := base64.StdEncoding.DecodeString(text)
			if err != nil || asked["MessageType"] != "DIGEST" || asked["SigningAlgorithm"] != "ECDSA_SHA_256" || len(digest) != crypto.SHA256.Size() {
				refuse(w, "ValidationException", "the stand-in signs SHA-256 digests by ECDSA_SHA_256")
				return
			}
			k, err := a.signer(asked)
			if err != nil {
				refuse(w, "KMSInternalException", err.Error())
				return
			}
			signature, err := ecdsa.SignASN1(rand.Reader, k, digest)
			if err != nil {
				refuse(w, "KMSInternalException", err.Error())
				return
			}
			reply(w, object{"KeyId": asked["KeyId"], "Signature": signature, "SigningAlgorithm": "ECDSA_SHA_256"})
		},
		"kms GetPublicKey": func(a *AWS, w http.ResponseWriter, r *http.Request) {
			asked := body(r)
			k, err := a.signer(asked)
			if err != nil {
				refuse(w, "KMSInternalException", err.Error())
				return
			}
			public, err := x509.MarshalPKIXPublicKey(k.Public())
			if err != nil {
				refuse(w, "KMSInternalException", err.Error())
				return
			}
			reply(w, object{"KeyId": asked["KeyId"], "PublicKey": public, "KeySpec": "ECC_NIST_P256", "KeyUsage": "SIGN_VERIFY", "SigningAlgorithms": []string{"ECDSA_SHA_256"}})
		},
	},
}

// signer is the key that a call names, by id or ARN.
func (a *AWS) signer(asked object) (*ecdsa.PrivateKey, error) {
	id, _ := asked["KeyId"].(string)
	id = id[strings.LastIndexByte(id, '/')+1:]
	if a.signers[id] == nil {
		made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		a.signers[id] = made
	}
	return a.signers[id], nil
}
