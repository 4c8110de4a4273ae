package migrate

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// knowledgeTable is what Amazon Bedrock wants of a table of PostgreSQL: https://docs.aws.amazon.com/bedrock/latest/userguide/knowledge-base-setup.html.
// infra/app/knowledge.tf names the columns. Bedrock puts an attribute of a document into the column of that name, and filters by it. The numbers of an
// embedding are 1,024: with another model it is another table.
const knowledgeTable = `
create schema knowledge_base authorization agentplatform_owner;
set local role agentplatform_owner;
create table knowledge_base.chunks (
  id        uuid primary key,
  embedding vector(1024),
  chunks    text,
  metadata  json,
  tenant_id text
);
create index chunks_embedding on knowledge_base.chunks using hnsw (embedding vector_cosine_ops);
create index chunks_text on knowledge_base.chunks using gin (to_tsvector('simple', chunks));
create index chunks_tenant on knowledge_base.chunks (tenant_id);
reset role;`

// knowledgeRights are its role's, which may be a new one.
const knowledgeRights = `
set local role agentplatform_owner;
grant all on schema knowledge_base to ` + postgres.KnowledgeRole + `;
grant all on table knowledge_base.chunks to ` + postgres.KnowledgeRole + `;
reset role;`

// knowledge makes what the managed knowledge base stands on, where the server has vectors: its role, with the password as it is now, and its table.
func (c Config) knowledge(ctx context.Context, conn *pgx.Conn) (ready bool, err error) {
	err = c.transaction(ctx, conn, func(ctx context.Context, tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `select exists (select from pg_extension where extname = 'vector')`).Scan(&ready); err != nil || !ready {
			return err
		}
		if err := letIn(ctx, tx, postgres.KnowledgeRole, c.Knowledge); err != nil {
			return err
		}
		var there bool // all of it: looking for each index by `if not exists` would wait for whoever writes
		if err := tx.QueryRow(ctx, `select to_regclass('knowledge_base.chunks') is not null`).Scan(&there); err != nil {
			return err
		}
		if !there {
			if _, err := tx.Exec(ctx, knowledgeTable); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, knowledgeRights)
		return err
	})
	return ready && err == nil, err
}

// letIn lets a role sign in with this password, and makes the role if there is none. The server is told no password, but what it would keep of it: it
// writes statements into its log.
func letIn(ctx context.Context, tx pgx.Tx, role, password string) error {
	secret, err := verifier(password)
	if err != nil {
		return fmt.Errorf("the password of %s: %w", role, err)
	}
	var there bool
	if err := tx.QueryRow(ctx, `select exists (select from pg_roles where rolname = $1)`, role).Scan(&there); err != nil {
		return err
	}
	name := pgx.Identifier{role}.Sanitize()
	if !there {
		if _, err := tx.Exec(ctx, `create role `+name+` nosuperuser nocreatedb nocreaterole`); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, `alter role `+name+` login password '`+secret+`'`) // of letters, digits and $ : + / = only
	return err
}

// verifier is what PostgreSQL keeps of a password, by RFC 5803: SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey.
func verifier(password string) (string, error) {
	const iterations = 4096 // PostgreSQL's own
	if strings.ContainsFunc(password, func(r rune) bool { return r < ' ' || r > '~' }) || password == "" {
		return "", errors.New("it must have printable ASCII characters only, which nobody has to normalize") // as SASLprep would
	}
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // never fails
	salted, err := pbkdf2.Key(sha256.New, password, salt, iterations, sha256.Size)
	if err != nil {
		return "", err
	}
	sign := func(text string) []byte {
		mac := hmac.New(sha256.New, salted)
		mac.Write([]byte(text))
		return mac.Sum(nil)
	}
	stored := sha256.Sum256(sign("Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", iterations, encode(salt), encode(stored[:]), encode(sign("Server Key"))), nil
}
