// Package clienttoken makes a retried call harmless: the same token with the same input is answered what the first call was answered.
package clienttoken

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// Once runs an operation in tx at most once per caller, operation and token; without a token it just runs it. repeated says that the
// result is an earlier call's. The token's row is written before the operation runs: a concurrent call with the same token waits for it.
func Once[R any](ctx context.Context, tx pgx.Tx, c tenant.Caller, operation string, token *string, input any, run func() (R, error)) (result R, repeated bool, err error) {
	if token == nil {
		result, err = run()
		return result, false, err
	}
	if err := text.Check("clientToken", *token, 1, 128); err != nil {
		return result, false, err
	}
	raw, err := json.Marshal(input)
	if err != nil {
		return result, false, err
	}
	hash := sha256.Sum256(raw)
	tag, err := tx.Exec(ctx, `insert into client_tokens (tenant_id, user_id, operation, token, input_hash, result) values ($1, $2, $3, $4, $5, '')
		on conflict do nothing`, c.TenantID, c.UserID, operation, *token, hash[:])
	if postgres.IsForeignKey(err, "") {
		return result, false, fault.New(fault.Forbidden, "this user is no longer in the tenant")
	}
	if err != nil {
		return result, false, err
	}
	if tag.RowsAffected() == 0 {
		err = earlier(ctx, tx, c, operation, *token, hash[:], &result)
		return result, true, err
	}
	if result, err = run(); err != nil {
		return result, false, err
	}
	if raw, err = json.Marshal(result); err != nil {
		return result, false, err
	}
	_, err = tx.Exec(ctx, `update client_tokens set result = $4 where user_id = $1 and operation = $2 and token = $3`, c.UserID, operation, *token, string(raw))
	return result, false, err
}

func earlier(ctx context.Context, tx pgx.Tx, c tenant.Caller, operation, token string, hash []byte, result any) error {
	var first []byte
	var raw string
	err := tx.QueryRow(ctx, `select input_hash, result from client_tokens where user_id = $1 and operation = $2 and token = $3`,
		c.UserID, operation, token).Scan(&first, &raw)
	if err != nil {
		return err
	}
	if subtle.ConstantTimeCompare(first, hash) != 1 {
		return fault.Invalid("clientToken was used with another input")
	}
	return json.Unmarshal([]byte(raw), result)
}
