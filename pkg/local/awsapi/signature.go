package awsapi

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

const (
	maxBody = 6<<20 + 1 // bytes; one more than Lambda takes, which then refuses it in its own words
	maxSkew = 15 * time.Minute
)

// authorization is the header's form: access key, date, region, service, signed headers, signature.
var authorization = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([a-z0-9-]+)/([a-z-]+)/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$`)

// signed lets through what is signed with the key.
func signed(accessKey, secret string, next http.Handler) http.Handler {
	credentials := aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secret}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			refuse(w, http.StatusRequestEntityTooLarge, "RequestEntityTooLargeException", "the request cannot be read, or is too large")
			return
		}
		if err := verify(r, body, credentials); err != nil {
			refuse(w, http.StatusForbidden, "InvalidSignatureException", err.Error())
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

var errNotSigned = errors.New("the request is not signed with the platform's key")

// verify signs what r says that it signed, and compares.
func verify(r *http.Request, body []byte, credentials aws.Credentials) error {
	m := authorization.FindStringSubmatch(r.Header.Get("Authorization"))
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if m == nil || err != nil || m[1] != credentials.AccessKeyID || m[2] != at.Format("20060102") {
		return errNotSigned
	}
	if skew := time.Since(at).Abs(); skew > maxSkew {
		return fmt.Errorf("the signature's time is %s away", skew.Round(time.Second))
	}
	sum := sha256.Sum256(body)
	again := &http.Request{Method: r.Method, URL: r.URL, Host: r.Host, Header: http.Header{}}
	for name := range strings.SplitSeq(m[5], ";") {
		switch name {
		case "host":
		case "content-length":
			again.ContentLength = int64(len(body))
		default:
			again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
		}
	}
	if err := v4.NewSigner().SignHTTP(r.Context(), credentials, again, hex.EncodeToString(sum[:]), m[4], m[3], at); err != nil {
		return err
	}
	want := authorization.FindStringSubmatch(again.Header.Get("Authorization"))
	if want == nil || want[5] != m[5] || subtle.ConstantTimeCompare([]byte(want[6]), []byte(m[6])) != 1 {
		return errNotSigned
	}
	return nil
}
