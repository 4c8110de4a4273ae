package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
)

// ErrTooLarge is a body that is longer than it may be.
var ErrTooLarge = errors.New("egress: the answer is too large")

// Refused is why a request was not sent, or its answer not taken. It is for whoever named the address to read.
type Refused struct{ Reason string }

func (e *Refused) Error() string { return e.Reason }

func refuse(reason string) error { return &Refused{reason} }

// errPrivate has the words of a name that nobody has: what names a private network has is not told.
var errPrivate = refuse(noAddress)

const noAddress = "the host has no address on the internet"

// Explain is an error of a request in words that whoever named the address may read: without a URL, which may have secrets in it, and without the
// platform's own addresses.
func Explain(err error) string {
	var refused *Refused
	var dns *net.DNSError
	var alert tls.AlertError
	var record tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	var network net.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &refused):
		return refused.Reason
	case errors.Is(err, ErrTooLarge):
		return "the answer is too large"
	case errors.Is(err, context.Canceled):
		return "the request was cancelled"
	case errors.As(err, &dns) && dns.IsNotFound:
		return noAddress
	case errors.As(err, &dns):
		return "the host's name could not be resolved; try again later"
	case errors.As(err, &certificate):
		return "the certificate of the server is not valid for its name"
	case errors.As(err, &alert), errors.As(err, &record):
		return "the server does not speak TLS as it should"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "the server did not answer in time"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the server refused the connection"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server broke the connection off"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "the server cannot be reached"
	case strings.Contains(err.Error(), "server response headers exceeded"):
		return "the header of the answer is too large"
	case strings.Contains(err.Error(), "server closed idle connection"):
		return "the server broke the connection off"
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "the server does not speak TLS as it should"
	}
	return "the answer of the server cannot be understood"
}
