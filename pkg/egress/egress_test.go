package egress_test

import (
	"compress/gzip"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agentplatform/agentplatform/pkg/egress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPublic(t *testing.T) {
	for _, s := range []string{"1.1.1.1", "8.8.8.8", "52.94.236.248", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255", "223.255.255.255",
		"2606:4700:4700::1111", "2a00:1450:4001:81b::200e", "2003::1", "3ffe::1"} {
		require.True(t, egress.Public(netip.MustParseAddr(s)), s)
	}
	for _, s := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.0", "100.100.100.200", "100.127.255.255", "127.0.0.1", "127.255.255.255", "168.63.129.16",
		"169.254.0.1", "169.254.169.253", "169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1",
		"198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::2", "::7f00:1", // unspecified, loopback, IPv4-compatible
		"::ffff:8.8.8.8", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:0:127.0.0.1", // mapped, translated
		"64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::a00:1", // NAT64
		"2002:7f00:1::", "2002:808:808::1", "2001::1", "2001:0:53aa:64c::1", "2001:10::1", "2001:20::1", "2001:db8::1", "3fff::1", // 6to4, Teredo, ORCHID, documentation
		"100::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "4000::1", "2606:4700::1%eth0",
	} {
		require.False(t, egress.Public(netip.MustParseAddr(s)), s)
	}
	require.False(t, egress.Public(netip.Addr{}))
}

// get gives the body, or the error of the request or of reading.
func get(t *testing.T, c *http.Client, url string) (string, error) {
	t.Helper()
	defer c.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	return do(c, r)
}

func do(c *http.Client, r *http.Request) (string, error) {
	response, err := c.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

func refused(t *testing.T, err error, says string) {
	t.Helper()
	var r *egress.Refused
	require.ErrorAs(t, err, &r)
	require.Equal(t, says, r.Reason)
	require.Equal(t, says, egress.Explain(err))
}

const private = "the host has no address on the internet"

// Whatever an address is written as or a name resolves to, it is looked at when it is connected to, and so no connection is made.
func TestOwnAddressesAreNotConnectedTo(t *testing.T) {
	var connections atomic.Int32
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			c.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	for _, host := range []string{"127.0.0.1", "localhost", "LOCALHOST", "localhost.", "[::1]", "[::]", "0.0.0.0", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "[::ffff:127.0.0.1]",
		"[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[::127.0.0.1]", "10.0.0.1", "169.254.169.254", "[fd00:ec2::254]", "[fe80::1%25lo]", "100.100.100.200"} {
		_, err := get(t, egress.New(egress.Config{}), "https://"+host+":"+port+"/")
		require.Error(t, err, host)
		require.Contains(t, []string{private, "the host's name could not be resolved; try again later"}, egress.Explain(err), "%s: %v", host, err)
		_, err = get(t, egress.New(egress.Config{}), "http://"+host+":"+port+"/")
		require.Error(t, err, host)
	}
	require.Zero(t, connections.Load())

	// The option is for this machine, not for its network; and a mapped address is not this machine's.
	for _, host := range []string{"10.0.0.1", "169.254.169.254", "192.168.1.1", "0.0.0.0", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]"} {
		for _, scheme := range []string{"http", "https"} {
			_, err = get(t, egress.New(egress.Config{Loopback: true}), scheme+"://"+host+":"+port+"/")
			refused(t, err, private)
		}
	}
	require.Zero(t, connections.Load())
	_, err = get(t, egress.New(egress.Config{Loopback: true}), "http://127.0.0.1:"+port+"/")
	require.Equal(t, "the server broke the connection off", egress.Explain(err), "%v", err)
	require.EqualValues(t, 1, connections.Load())
	require.NoError(t, listener.Close())
	<-done
}

func TestLoopback(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "plain") }))
	defer plain.Close()
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "secure") }))
	defer secure.Close()
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	body, err := get(t, egress.New(egress.Config{Loopback: true}), plain.URL)
	require.NoError(t, err)
	require.Equal(t, "plain", body)
	body, err = get(t, egress.New(egress.Config{Loopback: true}), strings.Replace(plain.URL, "127.0.0.1", "localhost", 1))
	require.NoError(t, err)
	require.Equal(t, "plain", body)
	body, err = get(t, egress.New(egress.Config{Loopback: true, Roots: roots}), secure.URL)
	require.NoError(t, err)
	require.Equal(t, "secure", body)

	_, err = get(t, egress.New(egress.Config{}), plain.URL)
	refused(t, err, "only https is allowed")
	_, err = get(t, egress.New(egress.Config{Roots: roots}), secure.URL)
	refused(t, err, private)
	_, err = get(t, egress.New(egress.Config{Loopback: true}), secure.URL)
	require.Equal(t, "the certificate of the server is not valid for its name", egress.Explain(err))
	_, err = get(t, egress.New(egress.Config{Loopback: true}), strings.Replace(plain.URL, "http:", "https:", 1))
	require.Equal(t, "the server does not speak TLS as it should", egress.Explain(err))
	_, err = get(t, egress.New(egress.Config{Loopback: true}), strings.Replace(plain.URL, "//", "//user:word@", 1))
	refused(t, err, "the URL has a user name or a password in it")
	for _, url := range []string{"ftp://127.0.0.1/", "file:///etc/passwd", "gopher://127.0.0.1"} {
		_, err = get(t, egress.New(egress.Config{Loopback: true}), url)
		require.Error(t, err)
		require.NotContains(t, egress.Explain(err), "passwd")
	}
}

// A variable of the environment names no way around the check.
func TestNoProxy(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked for %s", r.URL) }))
	defer proxy.Close()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "https_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	_, err := get(t, egress.New(egress.Config{}), "https://10.0.0.1/")
	refused(t, err, private)
}

func TestAnswersAreBounded(t *testing.T) {
	release := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/exact", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 1<<20)) })
	mux.HandleFunc("/long", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 1<<20+1)) })
	mux.HandleFunc("/endless", func(w http.ResponseWriter, _ *http.Request) {
		for chunk := make([]byte, 64<<10); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/bomb", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		for chunk := make([]byte, 1<<20); ; {
			if _, err := z.Write(chunk); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/header", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 128<<10)) })
	mux.HandleFunc("/silent", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-release:
		}
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	defer close(release)
	c := egress.New(egress.Config{Loopback: true, MaxBody: 1 << 20})
	body, err := get(t, c, server.URL+"/exact")
	require.NoError(t, err)
	require.Len(t, body, 1<<20)
	for _, path := range []string{"/long", "/endless", "/bomb"} {
		body, err = get(t, c, server.URL+path)
		require.ErrorIs(t, err, egress.ErrTooLarge, path)
		require.LessOrEqual(t, len(body), 1<<20)
		require.Equal(t, "the answer is too large", egress.Explain(err))
	}
	_, err = get(t, c, server.URL+"/header")
	require.Equal(t, "the header of the answer is too large", egress.Explain(err))
	_, err = get(t, egress.New(egress.Config{Loopback: true, Answer: 50 * time.Millisecond}), server.URL+"/silent")
	require.Equal(t, "the server did not answer in time", egress.Explain(err))
}

// raw is a server that says these bytes to every request, and hangs up.
func raw(t *testing.T, says string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		<-done
	})
	go func() {
		defer close(done)
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 4096))
			_, _ = io.WriteString(c, says)
			c.Close()
		}
	}()
	return "http://" + listener.Addr().String()
}

func TestServersThatLie(t *testing.T) {
	for says, want := range map[string]string{
		"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort":                         "the server broke the connection off",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nx": "the answer of the server cannot be understood",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx":         "the answer of the server cannot be understood",
		"SSH-2.0-OpenSSH_9.2\r\n": "the answer of the server cannot be understood",
		"":                        "the server broke the connection off",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n":                             "the server switches to another protocol",
		"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 20\r\n\r\nnot compressed at all":              "the answer of the server cannot be understood",
		strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", 10000) + "HTTP/1.1 200 OK\r\n\r\nnot reached": "the header of the answer is too large",
	} {
		_, err := get(t, egress.New(egress.Config{Loopback: true}), raw(t, says))
		require.Error(t, err, "%.60q", says)
		require.Equal(t, want, egress.Explain(err), "%.60q: %v", says, err)
	}
	body, err := get(t, egress.New(egress.Config{Loopback: true}), raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfour and more"))
	require.NoError(t, err)
	require.Equal(t, "four", body)
}
