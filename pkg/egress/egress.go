// Package egress is HTTP out of the platform to addresses that tenants name: what an agent fetches, tool servers, their authorization servers.
//
// A tenant may name anything, so what holds for every request, for each redirect too:
//
//   - Only addresses of the internet are connected to. The decision is made on the address that the connection is about to be made to, after the name was
//     resolved (net.Dialer.ControlContext), so that neither a name of a private address nor one whose answer changes passes. See Public.
//   - Only https, with a certificate of the name. No proxy, no cookies, no user name in a URL.
//   - What answers is bounded: headers, body (as unpacked, so that a compressed bomb ends at the limit), redirects, and the time until the headers.
//   - Another origin than the request's gets no header of it but Accept and User-Agent, and no body: no credential leaves its origin.
//
// Config.Loopback lets this machine's own addresses through as well, by http too: for the platform on one machine and for tests. It is off unless it is set.
package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// Config is what a client may do. The zero Config is good for the cloud.
type Config struct {
	Loopback  bool           // also 127.0.0.0/8 and ::1, by http as by https. Default: refused
	MaxBody   int64          // bytes of one body, as unpacked; more is ErrTooLarge. Default 8 MiB
	MaxHeader int64          // bytes of a response's header. Default 64 KiB
	Connect   time.Duration  // for the name, the connection, and the TLS handshake, each. Default 10 s
	Answer    time.Duration  // until the header of the answer. Default 60 s
	Roots     *x509.CertPool // whose certificates are good. Default: the machine's
}

// maxRedirects is how often a request may be sent elsewhere.
const maxRedirects = 5

// New makes a client. What is made of it may replace Transport and CheckRedirect by others that call these. It has no time limit over a whole exchange: that
// is the context's.
func New(c Config) *http.Client {
	if c.MaxBody == 0 {
		c.MaxBody = 8 << 20
	}
	if c.MaxHeader == 0 {
		c.MaxHeader = 64 << 10
	}
	if c.Connect == 0 {
		c.Connect = 10 * time.Second
	}
	if c.Answer == 0 {
		c.Answer = 60 * time.Second
	}
	g := &guard{maxBody: c.MaxBody, secure: c.transport(func(ip netip.Addr) bool { return Public(ip) || c.Loopback && loopback(ip) })}
	if c.Loopback {
		g.plain = c.transport(loopback) // whatever its name resolves to, http goes to this machine only
	}
	return &http.Client{Transport: g, CheckRedirect: checkRedirect}
}

func (c Config) transport(allowed func(netip.Addr) bool) *http.Transport {
	dialer := net.Dialer{Timeout: c.Connect, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil || !allowed(to.Addr()) {
			return errPrivate
		}
		return nil
	}}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.Roots},
		TLSHandshakeTimeout:    c.Connect,
		ResponseHeaderTimeout:  c.Answer,
		MaxResponseHeaderBytes: c.MaxHeader,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           32,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        30 * time.Second,
	}
}

// guard is the transport: it lets through what may leave, and bounds what comes back.
type guard struct {
	secure, plain *http.Transport // plain: nil where http is refused
	maxBody       int64
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	through, err := g.through(r)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper must
		}
		return nil, err
	}
	response, err := through.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusSwitchingProtocols {
		_ = response.Body.Close()
		return nil, refuse("the server switches to another protocol")
	}
	response.Body = &bounded{body: response.Body, left: g.maxBody}
	return response, nil
}

func (g *guard) through(r *http.Request) (*http.Transport, error) {
	if r.URL.User != nil {
		return nil, refuse("the URL has a user name or a password in it")
	}
	if ip, err := netip.ParseAddr(r.URL.Hostname()); err == nil && ip.Is4In6() { // net.Dial would take it for the IPv4 address in it
		return nil, errPrivate
	}
	switch {
	case r.URL.Hostname() == "":
		return nil, refuse("the URL has no host")
	case r.URL.Scheme == "https":
		return g.secure, nil
	case r.URL.Scheme == "http" && g.plain != nil:
		return g.plain, nil
	case r.URL.Scheme == "http":
		return nil, refuse("only https is allowed")
	}
	return nil, refuse("the URL is not https")
}

// CloseIdleConnections is what http.Client.CloseIdleConnections calls.
func (g *guard) CloseIdleConnections() {
	g.secure.CloseIdleConnections()
	if g.plain != nil {
		g.plain.CloseIdleConnections()
	}
}

// bounded ends a body that is longer than it may be.
type bounded struct {
	body io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrTooLarge
	}
	if int64(len(p)) > b.left+1 { // one more than may come, to tell the end from a longer body
		p = p[:b.left+1]
	}
	n, err := b.body.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n - 1, ErrTooLarge
	}
	return n, err
}

func (b *bounded) Close() error { return b.body.Close() }
