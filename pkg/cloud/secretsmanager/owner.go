package secretsmanager

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"

	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// Owner is PostgreSQL as the database's owner, for db:owner: by password, which is in DATABASE_OWNER_URL, or in the secret of AWS Secrets Manager that
// DATABASE_OWNER_SECRET_ID names; with the latter, by a token of IAM where the password is refused. DATABASE_KNOWLEDGE_SECRET_ID names that of the knowledge base's role, which the owner makes: it is read
// for each call, so that a new password needs no new process.
func Owner(a *cloud.Account, p *handler.Ports) {
	reader := open(a)
	p.Owner = sync.OnceValue(func() postgres.Config {
		url := a.DatabaseOwnerURL
		if oneOf("DATABASE_OWNER_URL", url, ownerSecret, a.DatabaseOwnerID) == ownerSecret {
			url = ownerURL(a.DatabaseOwnerID, read(a, reader, ownerSecret, a.DatabaseOwnerID))
		}
		config := postgres.Config{URL: url}
		if a.DatabaseOwnerID != "" {
			config.Password = a.Token()
		}
		return config
	})
	p.KnowledgePassword = func() string {
		if a.KnowledgeSecretID == "" {
			return ""
		}
		return knowledgePassword(a.KnowledgeSecretID, read(a, reader, knowledgeSecret, a.KnowledgeSecretID))
	}
}

const (
	ownerSecret     = "DATABASE_OWNER_SECRET_ID"
	knowledgeSecret = "DATABASE_KNOWLEDGE_SECRET_ID"
)

// ownerURL is the connection URL of a database's secret, in the form that Amazon RDS and the rotation functions of Secrets Manager write:
// {"engine": "postgres", "host": …, "port": 5432, "dbname": …, "username": …, "password": …}.
func ownerURL(id, text string) string {
	refuse := func(what string) string {
		panic(fmt.Sprintf("%s: secret %s %s", ownerSecret, id, what))
	}
	var s struct {
		Engine, Host, DBName, Username, Password string
		Port                                     json.Number // or a string that holds one
	}
	if json.Unmarshal([]byte(text), &s) != nil { // whose error may quote the text
		return refuse("is not the JSON object of a database: engine, host, port, dbname, username, password")
	}
	if s.Engine != "" && !strings.Contains(s.Engine, "postgres") {
		return refuse("is of engine " + s.Engine + ", not of postgres")
	}
	for _, member := range []struct{ name, value string }{{"host", s.Host}, {"dbname", s.DBName}, {"username", s.Username}, {"password", s.Password}} {
		if member.value == "" {
			return refuse("has no " + member.name)
		}
	}
	if s.Port == "" {
		s.Port = "5432"
	}
	u := url.URL{Scheme: "postgres", User: url.UserPassword(s.Username, s.Password), Host: net.JoinHostPort(s.Host, s.Port.String()),
		Path: "/" + s.DBName, RawQuery: "sslmode=verify-full"}
	return u.String()
}

// knowledgePassword is the password of the knowledge base's secret, in the form that Amazon Bedrock wants: {"username": …, "password": …}.
func knowledgePassword(id, text string) string {
	var s struct{ Username, Password string }
	if json.Unmarshal([]byte(text), &s) != nil { // whose error may quote the text
		panic(fmt.Sprintf("%s: secret %s is not the JSON object of a role: username, password", knowledgeSecret, id))
	}
	if s.Username != postgres.KnowledgeRole {
		panic(fmt.Sprintf("%s: secret %s has the username %q, where it must be %s", knowledgeSecret, id, s.Username, postgres.KnowledgeRole))
	}
	if len(s.Password) < 32 {
		panic(fmt.Sprintf("%s: secret %s has a password of fewer than 32 characters", knowledgeSecret, id))
	}
	return s.Password
}
