package postgres

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config says which database to use, and with how many connections.
//
// With sslmode=verify-full the server's certificate must be of the host's name and of an authority that the machine, or Amazon RDS, or the URL's
// sslrootcert has.
type Config struct {
	// URL is a connection URL or key=value string, with the application's role and its credential. Required.
	URL string
	// Password, if it is set, is called before each connection and gives the password to connect with, so that one that is good for minutes only
	// does. server is host:port, role the URL's. The URL then has none, and has sslmode=verify-full: the server gets the password as it is.
	Password func(ctx context.Context, server, role string) (string, error)
	// MaxConns bounds the pool. Default 4: a Lambda instance answers one request at a time, and only GraphQL runs
	// siblings in parallel. One process that serves everything wants more, below the server's max_connections.
	MaxConns int
	// ConnectTimeout is how long one connection may take. Default 5 s.
	ConnectTimeout time.Duration
	// Name is shown in pg_stat_activity. Default "agentplatform".
	Name string
}

// KnowledgeRole is what the managed knowledge base signs in as. It has its own schema and nothing else; the functions' roles have nothing there.
const KnowledgeRole = "agentplatform_knowledge"

// errURL is in the place of pgx's error, which quotes the URL, with the password.
var errURL = errors.New("postgres: the connection URL cannot be parsed")

// Connection is the same for connections beside the pool, such as a migration's: pgx.ConnectConfig(ctx, c), stdlib.OpenDB(*c).
func (config Config) Connection() (*pgx.ConnConfig, error) {
	if config.Password != nil {
		return nil, errors.New("postgres: a password that is made for each connection is for pools")
	}
	c, err := pgx.ParseConfig(config.URL)
	if err != nil {
		return nil, errURL
	}
	config.settle(c)
	return c, nil
}

// pool is Connection for all connections of a pool.
func (config Config) pool() (*pgxpool.Config, error) {
	c, err := pgxpool.ParseConfig(config.URL)
	if err != nil {
		return nil, errURL
	}
	config.settle(c.ConnConfig)
	c.MaxConns = int32(cmp.Or(config.MaxConns, 4))
	if config.Password == nil {
		return c, nil
	}
	if err := fitForPassword(c.ConnConfig); err != nil {
		return nil, err
	}
	c.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) (err error) {
		server := net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
		if c.Password, err = config.Password(ctx, server, c.User); err != nil {
			return fmt.Errorf("postgres: no password for %s at %s: %w", c.User, server, err)
		}
		return nil
	}
	return c, nil
}

// settle is what the package wants of every connection.
func (config Config) settle(c *pgx.ConnConfig) {
	c.ConnectTimeout = cmp.Or(config.ConnectTimeout, 5*time.Second)
	c.RuntimeParams["application_name"] = cmp.Or(config.Name, "agentplatform")
	// A function instance that is frozen in a transaction does not hold its locks for ever: the server ends it.
	c.RuntimeParams["idle_in_transaction_session_timeout"] = "2min"
	trustRDS(c)
}

// fitForPassword refuses connections over which a made password must not go. Whoever reads one, and whoever plays the server, could use it.
func fitForPassword(c *pgx.ConnConfig) error {
	if slices.ContainsFunc(lines(c), func(line *tls.Config) bool { return !verified(line) }) {
		return errors.New("postgres: a password that is made for each connection goes to a verified server only: put sslmode=verify-full into the URL")
	}
	if len(c.Fallbacks) > 0 {
		return errors.New("postgres: a password that is made for each connection is one server's: name one host in the URL")
	}
	if c.Password != "" {
		return errors.New("postgres: the URL (or PGPASSWORD, or a password file) has a password, where one is made for each connection: take it out")
	}
	return nil
}
