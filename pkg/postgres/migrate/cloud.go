package migrate

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// extensions adds what migrations may ask for, where the server has it and it takes a role of more rights than theirs.
func extensions(ctx context.Context, tx pgx.Tx) error {
	var add bool
	err := tx.QueryRow(ctx, `select exists (select from pg_available_extensions where name = 'vector' and installed_version is null)`).Scan(&add)
	if err == nil && add {
		_, err = tx.Exec(ctx, `create extension if not exists vector`)
	}
	return err
}

// signIn lets the roles that functions connect as sign in. On Amazon RDS and Aurora, membership in rds_iam makes them do so by IAM's tokens, and by
// nothing else; a role without a password cannot sign in anywhere else.
func signIn(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `select r.rolname, not r.rolcanlogin, iam.oid is not null and not exists
			(select from pg_auth_members m where m.roleid = iam.oid and m.member = r.oid)
		from pg_roles r left join pg_roles iam on iam.rolname = 'rds_iam'
		where r.rolname in ('agentplatform_app', 'agentplatform_ledger', 'agentplatform_reader')`)
	if err != nil {
		return err
	}
	type lack struct {
		Role       string
		Login, IAM bool
	}
	lacks, err := pgx.CollectRows(rows, pgx.RowToStructByPos[lack])
	if err != nil {
		return err
	}
	for _, l := range lacks {
		if l.Login {
			if _, err := tx.Exec(ctx, fmt.Sprintf(`alter role %s login`, l.Role)); err != nil {
				return err
			}
		}
		if l.IAM {
			if _, err := tx.Exec(ctx, fmt.Sprintf(`grant rds_iam to %s`, l.Role)); err != nil {
				return err
			}
		}
	}
	return nil
}
