package verify

import "context"

// Kept gives the positions that keptRows finds of a chain from 1 to to, some at a time, and the most rows that it held.
func Kept(ctx context.Context, url, tenant string, atOnce, to uint64) (found []uint64, most int, err error) {
	db, err := openDatabase(ctx, url, patience)
	if err != nil {
		return nil, 0, err
	}
	defer db.close()
	id, _ := parseUUID(tenant)
	rows := &keptRows{session: db.leader, id: id, atOnce: atOnce}
	for position := uint64(1); position <= to; position++ {
		row, there, err := rows.at(ctx, position)
		if err != nil {
			return nil, 0, err
		}
		if there {
			found = append(found, row.position)
		}
		most = max(most, len(rows.rows))
	}
	return found, most, nil
}
