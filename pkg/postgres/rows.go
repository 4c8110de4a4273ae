package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// All reads every row of a query.
func All[T any](ctx context.Context, q Querier, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

// One reads the row of a query that has one; no row is fault.Missing(kind).
func One[T any](ctx context.Context, q Querier, kind string, scan pgx.RowToFunc[T], sql string, args ...any) (T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		var zero T
		return zero, err
	}
	v, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		err = fault.Missing(kind)
	}
	return v, err
}

// Index reads every row of a query by a key of it.
func Index[T any](ctx context.Context, q Querier, scan pgx.RowToFunc[T], key func(T) string, sql string, args ...any) (map[string]T, error) {
	all, err := All(ctx, q, scan, sql, args...)
	index := make(map[string]T, len(all))
	for _, v := range all {
		index[key(v)] = v
	}
	return index, err
}
