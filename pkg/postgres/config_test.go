package postgres_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/postgres"
)

const verified = "postgres://app@db.example.com:5432/app?sslmode=verify-full"

// bundle is what is embedded; every block is a certificate.
func bundle(t *testing.T) (all []*x509.Certificate) {
	t.Helper()
	rest, err := os.ReadFile("rds-global-bundle.pem")
	require.NoError(t, err)
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			require.Empty(t, rest)
			return all
		}
		require.Equal(t, "CERTIFICATE", block.Type)
		certificate, err := x509.ParseCertificate(block.Bytes)
		require.NoError(t, err)
		require.True(t, certificate.IsCA, certificate.Subject)
		all = append(all, certificate)
	}
}

func TestTheBundleHasTheAuthoritiesOfRDS(t *testing.T) {
	has := map[string]bool{}
	for _, certificate := range bundle(t) {
		has[certificate.Subject.CommonName] = true
	}
	for _, region := range []string{"us-east-1", "us-east-2", "us-west-1", "us-west-2", "ca-central-1", "sa-east-1", "eu-central-1", "eu-central-2", "eu-west-1",
		"eu-west-2", "eu-west-3", "eu-north-1", "eu-south-1", "eu-south-2", "af-south-1", "me-south-1", "me-central-1", "ap-south-1", "ap-south-2",
		"ap-east-1", "ap-northeast-1", "ap-northeast-2", "ap-northeast-3", "ap-southeast-1", "ap-southeast-2", "ap-southeast-3", "ap-southeast-4"} {
		for _, kind := range []string{"RSA2048", "RSA4096", "ECC384"} {
			require.Contains(t, has, "Amazon RDS "+region+" Root CA "+kind+" G1")
		}
	}
}

// TestWhoIsTrusted: whoever verifies the server and names no authorities has the machine's and those of RDS; whoever names some has these only.
func TestWhoIsTrusted(t *testing.T) {
	all := bundle(t)
	rds := all[slices.IndexFunc(all, func(c *x509.Certificate) bool {
		return c.Subject.CommonName == "Amazon RDS eu-central-1 Root CA RSA2048 G1"
	})]
	trusted := func(url string) *x509.CertPool {
		c, err := postgres.Config{URL: url}.Connection()
		require.NoError(t, err)
		return c.TLSConfig.RootCAs
	}
	verify := func(pool *x509.CertPool) error {
		_, err := rds.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: rds.NotBefore.Add(time.Hour), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
		return err
	}
	pool := trusted(verified)
	require.NoError(t, verify(pool))
	want, err := x509.SystemCertPool()
	require.NoError(t, err)
	for _, certificate := range all {
		want.AddCert(certificate)
	}
	require.True(t, pool.Equal(want), "the machine's authorities, and the bundle")

	ca := newAuthority(t)
	require.Error(t, verify(trusted(verified+"&sslrootcert="+ca.file)))
	require.Error(t, verify(trusted(verified+"&sslrootcert=system")))
	require.Nil(t, trusted("postgres://app@db.example.com/app?sslmode=require"), "nothing is verified")
}

// TestAMadePasswordNeedsAVerifiedServer: Open refuses to send one where it could be read, or could be anybody's.
func TestAMadePasswordNeedsAVerifiedServer(t *testing.T) {
	t.Setenv("PGPASSFILE", os.DevNull)
	password := func(context.Context, string, string) (string, error) { return "", errors.New("nobody asks") }
	for url, want := range map[string]string{
		"postgres://app@db.example.com/app":                                         "goes to a verified server only: put sslmode=verify-full into the URL",
		"postgres://app@db.example.com/app?sslmode=disable":                         "put sslmode=verify-full into the URL",
		"postgres://app@db.example.com/app?sslmode=prefer":                          "put sslmode=verify-full into the URL",
		"postgres://app@db.example.com/app?sslmode=require":                         "put sslmode=verify-full into the URL",
		"postgres://app@db.example.com/app?sslmode=verify-ca":                       "put sslmode=verify-full into the URL",
		"postgres://app@/app?host=/run/postgresql&sslmode=verify-full":              "put sslmode=verify-full into the URL",
		"postgres://app@a.example.com:5432,b.example.com:5432/?sslmode=verify-full": "name one host in the URL",
		"postgres://app:p-of-the-url@db.example.com/app?sslmode=verify-full":        "take it out",
	} {
		_, err := postgres.Open(t.Context(), postgres.Config{URL: url, Password: password})
		require.ErrorContains(t, err, want, url)
		require.NotContains(t, err.Error(), "p-of-the-url")
		if want == "take it out" {
			_, err = postgres.Open(t.Context(), postgres.Config{URL: verified + "&password=p-of-the-url", Password: password})
			require.ErrorContains(t, err, want)
		}
	}
	db, err := postgres.Open(t.Context(), postgres.Config{URL: verified, Password: password})
	require.NoError(t, err)
	db.Close()
	_, err = postgres.Config{URL: verified, Password: password}.Connection()
	require.ErrorContains(t, err, "is for pools")
	_, err = postgres.Config{URL: "postgres://app:p-of-the-url@db.example.com:many/"}.Connection()
	require.EqualError(t, err, "postgres: the connection URL cannot be parsed")
}
