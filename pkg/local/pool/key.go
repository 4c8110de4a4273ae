package pool

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/http"
	"os"

	"github.com/agentplatform/agentplatform/pkg/atomicfile"
)

// openKey is the RSA key in the file at path, made there when missing, and its key id (the thumbprint of RFC 7638).
func openKey(path string) (*rsa.PrivateKey, string, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return makeKey(path)
	}
	if err != nil {
		return nil, "", fmt.Errorf("identity pool: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, "", fmt.Errorf("identity pool: %w", err)
	}
	damaged := fmt.Errorf("identity pool: %s is not an RSA private key: remove it to make a new one (all tokens become invalid)", path)
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, "", damaged
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(*rsa.PrivateKey)
	if err != nil || !ok || key.N.BitLen() < 2048 {
		return nil, "", damaged
	}
	return key, keyID(key), nil
}

func makeKey(path string) (*rsa.PrivateKey, string, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, "", err
	}
	return key, keyID(key), atomicfile.Write(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
}

func keyID(key *rsa.PrivateKey) string {
	n, e := publicParts(key)
	sum := sha256.Sum256([]byte(`{"e":"` + e + `","kty":"RSA","n":"` + n + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func publicParts(key *rsa.PrivateKey) (n, e string) {
	return base64.RawURLEncoding.EncodeToString(key.N.Bytes()), base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes())
}

// jwks serves GET /<pool id>/.well-known/jwks.json.
func (p *Pool) jwks(w http.ResponseWriter, _ *http.Request) {
	n, e := publicParts(p.key)
	w.Header().Set("Cache-Control", "public, max-age=60")
	writeJSON(w, http.StatusOK, map[string]any{"keys": []map[string]string{{"alg": "RS256", "e": e, "kid": p.kid, "kty": "RSA", "n": n, "use": "sig"}}})
}
