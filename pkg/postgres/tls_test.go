package postgres_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/postgres/embedded"
)

// authority is a certificate authority of a test; file has its certificate.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	file        string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: t.Name()}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	a := &authority{certificate, key, filepath.Join(t.TempDir(), "ca.pem")}
	require.NoError(t, os.WriteFile(a.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return a
}

// issue is the certificate and the key of a server of that address, as PEM.
func (a *authority) issue(t *testing.T, address string) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(2), IPAddresses: []net.IP{net.ParseIP(address)}, NotBefore: a.certificate.NotBefore,
		NotAfter: a.certificate.NotAfter, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
	require.NoError(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

// encrypted is a PostgreSQL that, over TCP, wants TLS and the password as it is: as Amazon RDS does where it is a token. Its certificate is 127.0.0.1's.
type encrypted struct {
	admin *pgx.Conn
	ca    *authority
	port  string
}

func startEncrypted(t *testing.T) *encrypted {
	t.Helper()
	dir, ca := t.TempDir(), newAuthority(t)
	server, err := embedded.Start(t.Context(), embedded.Config{Dir: dir, Password: "super"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })

	data := filepath.Join(dir, "data")
	owner, err := os.Stat(data)
	require.NoError(t, err)
	certificate, key := ca.issue(t, "127.0.0.1")
	for name, content := range map[string][]byte{"server.crt": certificate, "server.key": key,
		"pg_hba.conf": []byte("local all all scram-sha-256\nhostssl all all 127.0.0.1/32 password\n")} {
		file := filepath.Join(data, name)
		require.NoError(t, os.WriteFile(file, content, 0o600))
		require.NoError(t, os.Chown(file, int(owner.Sys().(*syscall.Stat_t).Uid), -1))
	}
	at, err := url.Parse(server.TCPURL("any", "any", embedded.Database))
	require.NoError(t, err)
	s := &encrypted{ca: ca, port: at.Port()}
	s.admin, err = pgx.Connect(t.Context(), server.URL(embedded.Superuser, "super", embedded.Database))
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.admin.Close(context.Background()) })
	s.run(t, "create role app login password 'first'", "alter system set ssl = on", "select pg_reload_conf()")
	require.Eventually(t, func() bool {
		var on string
		return s.admin.QueryRow(t.Context(), "show ssl").Scan(&on) == nil && on == "on"
	}, time.Minute, 5*time.Millisecond)
	return s
}

func (s *encrypted) run(t *testing.T, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		_, err := s.admin.Exec(t.Context(), statement)
		require.NoError(t, err, statement)
	}
}

func (s *encrypted) url(host, query string) string {
	return "postgres://app@" + net.JoinHostPort(host, s.port) + "/postgres?sslmode=verify-full" + query
}

// dispenser gives the password that it has at the moment, and remembers who asked.
type dispenser struct {
	mu       sync.Mutex
	password string
	err      error
	asked    []string
}

func (d *dispenser) Get(_ context.Context, server, role string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, role+" at "+server)
	return d.password, d.err
}

func (d *dispenser) set(password string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.password, d.err = password, err
}

func (d *dispenser) times() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.asked)
}

// backend is the server's process that a transaction runs in.
func backend(t *testing.T, db *postgres.DB) (pid int, err error) {
	t.Helper()
	err = db.Unbound(t.Context(), func(tx pgx.Tx) error {
		var encrypted bool
		err := tx.QueryRow(t.Context(), "select pid, ssl from pg_stat_ssl where pid = pg_backend_pid()").Scan(&pid, &encrypted)
		if err == nil && !encrypted {
			err = errors.New("the connection is not encrypted")
		}
		return err
	})
	return pid, err
}

// TestEachConnectionHasAPasswordOfItsOwn: a password is good for minutes, a connection for longer; one that is lost is replaced, with the password
// of then.
func TestEachConnectionHasAPasswordOfItsOwn(t *testing.T) {
	s := startEncrypted(t)
	d := &dispenser{password: "first"}
	db, err := postgres.Open(t.Context(), postgres.Config{URL: s.url("127.0.0.1", "&sslrootcert="+s.ca.file), Password: d.Get, MaxConns: 1})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	require.Zero(t, d.times(), "nothing is asked before the first transaction")
	first, err := backend(t, db)
	require.NoError(t, err)
	require.Equal(t, []string{"app at 127.0.0.1:" + s.port}, d.asked)

	s.run(t, "alter role app password 'second'")
	again, err := backend(t, db)
	require.NoError(t, err)
	require.Equal(t, first, again, "the connection lives on")
	require.Equal(t, 1, d.times())

	d.set("second", nil)
	end := func(pid int) {
		_, err := s.admin.Exec(t.Context(), "select pg_terminate_backend($1, 60000)", pid)
		require.NoError(t, err)
	}
	end(first)
	second, err := backend(t, db)
	require.NoError(t, err, "the pool heals")
	require.NotEqual(t, first, second)
	require.Equal(t, 2, d.times())

	d.set("first", nil)
	end(second)
	_, err = backend(t, db)
	require.ErrorContains(t, err, "28P01", "a password that is good no more is refused, and not tried again")
	require.Equal(t, 3, d.times())

	broken := errors.New("no credentials")
	d.set("", broken)
	_, err = backend(t, db)
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "no password for app at 127.0.0.1:"+s.port)

	d.set("second", nil)
	_, err = backend(t, db)
	require.NoError(t, err, "and heals again")
}

// TestAnUnverifiedServerGetsNoPassword: neither one of an unknown authority nor one of another name.
func TestAnUnverifiedServerGetsNoPassword(t *testing.T) {
	s := startEncrypted(t)
	for _, c := range []struct{ host, query, want string }{
		{"127.0.0.1", "&sslrootcert=" + newAuthority(t).file, "certificate signed by unknown authority"},
		{"127.0.0.1", "", "certificate signed by unknown authority"},
		{"localhost", "&sslrootcert=" + s.ca.file, "certificate"},
	} {
		var unknown x509.UnknownAuthorityError
		var other x509.HostnameError
		db, err := postgres.Open(t.Context(), postgres.Config{URL: s.url(c.host, c.query), Password: (&dispenser{password: "first"}).Get})
		require.NoError(t, err)
		t.Cleanup(db.Close)
		_, err = backend(t, db)
		require.ErrorContains(t, err, c.want)
		require.True(t, errors.As(err, &unknown) || errors.As(err, &other), err)
		require.Equal(t, c.host == "localhost", errors.As(err, &other), err)
	}

	config, err := postgres.Config{URL: s.url("127.0.0.1", "&password=first&sslrootcert="+s.ca.file)}.Connection()
	require.NoError(t, err)
	conn, err := pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err, "and beside the pool the same")
	require.NoError(t, conn.Close(t.Context()))
	config, err = postgres.Config{URL: s.url("127.0.0.1", "&password=first")}.Connection()
	require.NoError(t, err)
	_, err = pgx.ConnectConfig(t.Context(), config)
	require.ErrorContains(t, err, "certificate signed by unknown authority")
}
