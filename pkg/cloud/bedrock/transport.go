package bedrock

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"time"
)

// newTransport keeps as many connections as calls run at a time: the SDK's default keeps 10 and dials for the rest.
func newTransport(c Config) *http.Transport {
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		DialContext:           dialer.DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          c.Connections,
		MaxIdleConnsPerHost:   c.Connections,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   5 * time.Second,
		ResponseHeaderTimeout: c.HeaderWait,
		DisableCompression:    true, // an event stream is not compressed
	}
}

// sender is the SDK's HTTP client. It follows no redirects, and it gives the transport a request body of its own: the SDK closes
// its body as soon as the response's header is there, which with a quick server is before the transport has looked for the body's
// end; the transport then takes the request for broken and cuts the connection under the answer. A body that can be had
// again also lets the transport repeat a request that met a connection which the server had just closed.
type sender struct{ transport *http.Transport }

func (s sender) Do(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.ContentLength <= 0 {
		return s.transport.RoundTrip(r)
	}
	body := make([]byte, r.ContentLength)
	_, err := io.ReadFull(r.Body, body)
	_ = r.Body.Close()
	if err != nil {
		return nil, err
	}
	own := r.WithContext(r.Context())
	own.Body = io.NopCloser(bytes.NewReader(body))
	own.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return s.transport.RoundTrip(own)
}
