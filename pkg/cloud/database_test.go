package cloud

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/handler"
)

// server plays PostgreSQL up to the password, which it shows and refuses: no other server here knows a token of IAM.
type server struct {
	address, ca string      // host:port; the file of who certifies it
	passwords   chan string // as they arrive
}

func startServer(t *testing.T) *server {
	t.Helper()
	certified := httptest.NewTLSServer(nil) // for its certificate, of 127.0.0.1
	t.Cleanup(certified.Close)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	s := &server{l.Addr().String(), filepath.Join(t.TempDir(), "ca.pem"), make(chan string, 16)}
	require.NoError(t, os.WriteFile(s.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certified.Certificate().Raw}), 0o600))
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.login(conn, &tls.Config{Certificates: certified.TLS.Certificates})
		}
	}()
	return s
}

func (s *server) login(conn net.Conn, line *tls.Config) {
	defer conn.Close()
	plain := pgproto3.NewBackend(conn, conn)
	if first, err := plain.ReceiveStartupMessage(); err != nil {
		return
	} else if _, ok := first.(*pgproto3.SSLRequest); !ok {
		return
	}
	if _, err := conn.Write([]byte("S")); err != nil {
		return
	}
	encrypted := tls.Server(conn, line)
	back := pgproto3.NewBackend(encrypted, encrypted)
	if _, err := back.ReceiveStartupMessage(); err != nil {
		return
	}
	back.Send(&pgproto3.AuthenticationCleartextPassword{})
	if back.Flush() != nil || back.SetAuthType(pgproto3.AuthTypeCleartextPassword) != nil {
		return
	}
	if message, err := back.Receive(); err == nil {
		s.passwords <- message.(*pgproto3.PasswordMessage).Password
		back.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "28000", Message: "PAM authentication failed"})
		_ = back.Flush()
	}
}

// TestATokenOfIAMIsThePassword reads what goes to the database: a request to connect, as the URL's role to the URL's server, signed for the
// function's region and good for 15 minutes.
func TestATokenOfIAMIsThePassword(t *testing.T) {
	s := startServer(t)
	t.Setenv("AWS_SESSION_TOKEN", "of the role")
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "any", "AWS_REGION": "eu-central-1"} {
		t.Setenv(name, value)
	}
	for _, c := range []struct {
		setting, role string
		adapter       Adapter
	}{{"DATABASE_URL", "agentplatform_app", DB}, {"DATABASE_READER_URL", "agentplatform_reader", Reader}, {"DATABASE_LEDGER_URL", "agentplatform_ledger", Ledger}} {
		p := ports(t, map[string]string{"DATABASE_AUTH": "iam", c.setting: "postgres://" + c.role + "@" + s.address + "/app?sslmode=verify-full&sslrootcert=" + s.ca}, c.adapter)
		open := p.DB
		switch c.setting {
		case "DATABASE_READER_URL":
			open = p.Reader
		case "DATABASE_LEDGER_URL":
			open = p.Ledger
		}
		db := open()
		require.ErrorContains(t, db.Ping(t.Context()), "PAM authentication failed")
		token, err := url.Parse("https://" + <-s.passwords)
		require.NoError(t, err)
		require.Equal(t, s.address, token.Host)
		query := token.Query()
		require.Equal(t, "connect", query.Get("Action"))
		require.Equal(t, c.role, query.Get("DBUser"))
		require.Equal(t, "900", query.Get("X-Amz-Expires"))
		require.Equal(t, "AWS4-HMAC-SHA256", query.Get("X-Amz-Algorithm"))
		require.Regexp(t, `^AKIAEXAMPLE/\d{8}/eu-central-1/rds-db/aws4_request$`, query.Get("X-Amz-Credential"))
		require.Equal(t, "of the role", query.Get("X-Amz-Security-Token"))
		require.Regexp(t, `^[0-9a-f]{64}$`, query.Get("X-Amz-Signature"))
		db.Close()
	}
}

func TestIAMIsRefusedWhereATokenCouldBeRead(t *testing.T) {
	for name, value := range map[string]string{"PGPASSFILE": os.DevNull, "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "any"} {
		t.Setenv(name, value)
	}
	for _, c := range []struct{ auth, url, want string }{
		{"iam", "postgres://app@db.example.com/app", "DATABASE_URL, DATABASE_AUTH=iam: postgres: a password that is made for each connection goes to a verified server only: put sslmode=verify-full into the URL"},
		{"iam", "postgres://app@db.example.com/app?sslmode=require", "put sslmode=verify-full into the URL"},
		{"iam", "postgres://app:p-of-the-url@db.example.com/app?sslmode=verify-full", "take it out"},
		{"aim", "postgres://app@db.example.com/app?sslmode=verify-full", "DATABASE_AUTH=aim is not a way to authenticate: use iam or password"},
		{"iam", "", "DATABASE_URL is not set"},
		{"password", "postgres://app:p-of-the-url@:many/", "DATABASE_URL, DATABASE_AUTH=password: postgres: the connection URL cannot be parsed"},
	} {
		p := ports(t, map[string]string{"DATABASE_AUTH": c.auth, "DATABASE_URL": c.url}, DB)
		message := refusal(t, func() { p.DB() })
		require.Contains(t, message, c.want)
		require.NotContains(t, message, "p-of-the-url")
	}
	for _, auth := range []string{"", "password"} {
		p := ports(t, map[string]string{"DATABASE_AUTH": auth, "DATABASE_URL": "postgres://app:p@db.example.com/app"}, DB)
		p.DB().Close()
	}
}

// ports are those of a function with this environment.
func ports(t *testing.T, environment map[string]string, adapters ...Adapter) *handler.Ports {
	t.Helper()
	for name, value := range environment {
		t.Setenv(name, value)
	}
	p, err := Ports(t.Context(), Environment, adapters...)
	require.NoError(t, err)
	return p
}

// refusal is what a start that fails says.
func refusal(t *testing.T, start func()) (message string) {
	t.Helper()
	defer func() {
		r := recover()
		require.NotNil(t, r, "it started")
		message = fmt.Sprint(r)
	}()
	start()
	return ""
}
