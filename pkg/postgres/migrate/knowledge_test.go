package migrate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/postgres/migrate"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/schema"
	"github.com/agentplatform/agentplatform/test/pgvector"
)

const knowledgePassword = "0123456789abcdef0123456789ABCDEF"

// embedding is a vector that points along one axis.
func embedding(axis int) string {
	numbers := strings.Split(strings.Repeat("0 ", 1024), " ")[:1024]
	numbers[axis] = "1"
	return "[" + strings.Join(numbers, ",") + "]"
}

// With vectors, the managed knowledge base finds what it asks for, may write there, and has nothing else.
func TestTheKnowledgeBaseHasItsTable(t *testing.T) {
	url := pgvector.Start(t)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	exec := func(sql string, args ...any) {
		t.Helper()
		_, err := conn.Exec(t.Context(), sql, args...)
		require.NoError(t, err, sql)
	}
	// As in the cloud, the database's owner may make roles and is no superuser. There is one session: it is the next connections' too.
	exec(`create extension vector`) // which the owner itself may do in the cloud only
	exec(`create role platform_admin createrole`)
	exec(`alter database postgres owner to platform_admin`)
	exec(`set session authorization platform_admin`)
	require.NoError(t, conn.Close(t.Context()))

	config := migrate.Config{Files: schema.SQL, Cloud: true, Knowledge: knowledgePassword}
	for i := range 3 { // each deployment does it again
		if i == 2 {
			config.Knowledge += "another"
		}
		report, err := migrate.Run(t.Context(), postgres.Config{URL: url}, config)
		require.NoError(t, err)
		require.Equal(t, migrate.KnowledgeReady, report.Knowledge)
	}
	conn, err = pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	exec(`set session authorization postgres`)
	value := func(sql string, into any) {
		t.Helper()
		require.NoError(t, conn.QueryRow(t.Context(), sql).Scan(into), sql)
	}

	// What Amazon Bedrock looks for: the columns, and an index for each of the two ways to search.
	var columns, indexes []string
	value(`select array_agg(attname || ' ' || format_type(atttypid, atttypmod) order by attnum) from pg_attribute where attrelid = 'knowledge_base.chunks'::regclass and attnum > 0`, &columns)
	require.Equal(t, []string{"id uuid", "embedding vector(1024)", "chunks text", "metadata json", "tenant_id text"}, columns)
	value(`select array_agg(substring(indexdef from 'USING .*') order by indexname) from pg_indexes where schemaname = 'knowledge_base'`, &indexes)
	require.Equal(t, []string{"USING hnsw (embedding vector_cosine_ops)", "USING btree (id)", "USING btree (tenant_id)", "USING gin (to_tsvector('simple'::regconfig, chunks))"}, indexes)

	// As the role: it writes, searches by vector and by words, and forgets.
	exec(`set role ` + postgres.KnowledgeRole)
	for i, tenant := range []string{"a", "b", "a"} {
		exec(`insert into knowledge_base.chunks (id, embedding, chunks, metadata, tenant_id) values ($1::text::uuid, $2::text::vector, $3, '{}', $4)`,
			fmt.Sprintf("00000000-0000-4000-8000-%012d", i), embedding(i), fmt.Sprintf("passage %d", i), tenant)
	}
	var found, plan string
	value(`select string_agg(chunks, ', ' order by embedding <=> '`+embedding(2)+`') from knowledge_base.chunks where tenant_id = 'a'`, &found)
	require.Equal(t, "passage 2, passage 0", found)
	value(`select chunks from knowledge_base.chunks where to_tsvector('simple', chunks) @@ plainto_tsquery('simple', '1')`, &found)
	require.Equal(t, "passage 1", found)
	exec(`set enable_seqscan = off`) // of three rows
	value(`explain (format json) select id from knowledge_base.chunks order by embedding <=> '`+embedding(1)+`' limit 1`, &plan)
	require.Contains(t, plan, `"Index Name": "chunks_embedding"`)
	value(`explain (format json) select id from knowledge_base.chunks where to_tsvector('simple', chunks) @@ plainto_tsquery('simple', '1')`, &plan)
	require.Contains(t, plan, `"Index Name": "chunks_text"`)
	exec(`set enable_seqscan = on`)
	exec(`delete from knowledge_base.chunks`)
	exec(`reset role`)

	// A role that is lost is made again, with its rights.
	exec(`drop owned by ` + postgres.KnowledgeRole)
	exec(`drop role ` + postgres.KnowledgeRole)
	exec(`set session authorization platform_admin`)
	require.NoError(t, conn.Close(t.Context()))
	_, err = migrate.Run(t.Context(), postgres.Config{URL: url}, config)
	require.NoError(t, err)
	conn, err = pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	exec(`set session authorization ` + postgres.KnowledgeRole)
	exec(`insert into knowledge_base.chunks (id) values (gen_random_uuid())`)
	exec(`set session authorization postgres`)

	// It has nothing of the platform's, and the platform's roles have nothing of it.
	var others, functions, guests []string
	value(`select coalesce(array_agg(c.oid::regclass::text), '{}') from pg_class c where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v', 'm', 'S', 'f')
		and case when relkind = 'S' then has_sequence_privilege('`+postgres.KnowledgeRole+`', oid, 'usage, select, update')
			else has_table_privilege('`+postgres.KnowledgeRole+`', oid, 'select, insert, update, delete, truncate, references, trigger')
				or has_any_column_privilege('`+postgres.KnowledgeRole+`', oid, 'select, insert, update, references') end`, &others)
	require.Empty(t, others, "tables that it may use")
	value(`select coalesce(array_agg(p.oid::regprocedure::text), '{}') from pg_proc p where prosecdef and has_function_privilege('`+postgres.KnowledgeRole+`', oid, 'execute')`, &functions)
	require.Empty(t, functions, "functions that do what it may not")
	value(`select coalesce(array_agg(rolname::text), '{}') from pg_roles where rolname in ('agentplatform_app', 'agentplatform_ledger', 'agentplatform_reader', 'agentplatform_lookup')
		and (has_schema_privilege(oid, 'knowledge_base', 'usage, create') or has_table_privilege(oid, 'knowledge_base.chunks', 'select, insert, update, delete'))`, &guests)
	require.Empty(t, guests, "roles that have something of the knowledge base")
	var right string
	value(`select concat_ws(' ', rolsuper, rolcreatedb, rolcreaterole, rolbypassrls, rolcanlogin, (select count(*) from pg_auth_members where member = r.oid),
		has_schema_privilege(oid, 'public', 'create')) from pg_roles r where rolname = '`+postgres.KnowledgeRole+`'`, &right)
	require.Equal(t, "f f f f t 0 f", right)
	value(`select tableowner from pg_tables where schemaname = 'knowledge_base'`, &right)
	require.Equal(t, "agentplatform_owner", right)
}

// Without vectors there is no knowledge base, and the deployment goes on.
func TestNoKnowledgeBaseWithoutVectors(t *testing.T) {
	db := pgtest.New(t)
	report, err := run(t, db, nil, migrate.Config{Cloud: true, Knowledge: knowledgePassword})
	require.NoError(t, err)
	require.Equal(t, "the server has no extension vector", report.Knowledge)
	var there bool
	require.NoError(t, db.Superuser(t).QueryRow(t.Context(), `select to_regnamespace('knowledge_base') is not null or exists (select from pg_roles where rolname = $1)`, postgres.KnowledgeRole).Scan(&there))
	require.False(t, there)
}

// The role signs in with its password, which the server was never told, and after the next deployment with the next one only.
func TestARoleIsLetInByWhatIsKeptOfItsPassword(t *testing.T) {
	db := pgtest.New(t)
	super := db.Superuser(t)
	const role = `odd "role`
	t.Cleanup(func() { // roles are the server's, not the database's
		_, err := super.Exec(context.Background(), `drop role `+pgx.Identifier{role}.Sanitize())
		require.NoError(t, err)
	})
	signIn := func(password string) error {
		config, err := pgx.ParseConfig(db.SuperURL)
		require.NoError(t, err)
		config.User, config.Password = role, password
		conn, err := pgx.ConnectConfig(t.Context(), config)
		if err == nil {
			err = conn.Close(t.Context())
		}
		return err
	}
	passwords := []string{knowledgePassword, ` it's "a" \ password~`}
	for i, password := range passwords {
		require.NoError(t, pgx.BeginFunc(t.Context(), super, func(tx pgx.Tx) error { return migrate.LetIn(t.Context(), tx, role, password) }))
		require.NoError(t, signIn(password))
		if i > 0 {
			require.ErrorContains(t, signIn(passwords[i-1]), "password authentication failed")
		}
	}
	for _, password := range []string{"", "pässword", "a\ttab"} {
		err := pgx.BeginFunc(t.Context(), super, func(tx pgx.Tx) error { return migrate.LetIn(t.Context(), tx, role, password) })
		require.ErrorContains(t, err, "it must have printable ASCII characters only")
	}
}
