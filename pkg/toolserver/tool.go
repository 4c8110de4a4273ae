package toolserver

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// Tool is a server's tool as the API shows it.
type Tool struct {
	Name                string      `json:"name"` // as agents are granted and offered it
	Tool                string      `json:"tool"` // as the server calls it
	Description         string      `json:"description"`
	Schema              string      `json:"schema"`     // JSON Schema of its input
	Idempotent          bool        `json:"idempotent"` // says the server
	Hash                string      `json:"hash"`       // of the four above
	Status              ToolStatus  `json:"status"`
	ApprovedDescription *string     `json:"approvedDescription"`
	ApprovedSchema      *string     `json:"approvedSchema"`
	ApprovedBy          *string     `json:"approvedBy"` // a user
	ApprovedAt          *ident.Time `json:"approvedAt"`
}

// ToolStatus is whether agents are offered a tool.
type ToolStatus string

const (
	ToolApproved ToolStatus = "APPROVED" // it is as a person approved it
	ToolNew      ToolStatus = "NEW"      // nobody has approved it
	ToolChanged  ToolStatus = "CHANGED"  // it was approved, and is another one now
)

// toolColumns are a tool's, of the table of that name.
func toolColumns(t string) string {
	return t + strings.ReplaceAll(`name, tool, description, schema::text, idempotent, hash, approved_hash, approved_description, approved_schema::text, approved_by, approved_at`, " ", " "+t)
}

func scanTool(row pgx.CollectableRow, more ...any) (Tool, error) {
	var t Tool
	var approved *string
	err := row.Scan(append([]any{&t.Name, &t.Tool, &t.Description, &t.Schema, &t.Idempotent, &t.Hash, &approved, &t.ApprovedDescription, &t.ApprovedSchema, &t.ApprovedBy,
		&t.ApprovedAt}, more...)...)
	switch {
	case approved == nil:
		t.Status = ToolNew
	case *approved == t.Hash:
		t.Status = ToolApproved
	default:
		t.Status = ToolChanged
	}
	return t, err
}

// Tools are the tools of these servers, by name, by the server's id.
func Tools(ctx context.Context, q postgres.Querier, servers []string) (map[string][]Tool, error) {
	rows, err := q.Query(ctx, `select `+toolColumns(``)+`, server_id from tool_server_tools where server_id = any($1::uuid[]) order by name`, servers)
	if err != nil {
		return nil, err
	}
	byServer := map[string][]Tool{}
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (Tool, error) {
		var server string
		t, err := scanTool(row, &server)
		byServer[server] = append(byServer[server], t)
		return t, err
	})
	return byServer, err
}

// Seen is a tool as a person saw it.
type Seen struct {
	Name string `json:"name"`
	Hash string `json:"hash"`
}

// Approve lets agents be offered tools as a person saw them. One that is another one by now is refused, and nothing is approved.
func Approve(ctx context.Context, tx pgx.Tx, serverID, userID string, tools []Seen) (Server, error) {
	server, err := lock(ctx, tx, serverID)
	if err != nil {
		return Server{}, err
	}
	if len(tools) == 0 || len(tools) > 1000 {
		return Server{}, fault.Invalid("tools must name 1 to 1000 tools")
	}
	for _, t := range tools {
		tag, err := tx.Exec(ctx, `update tool_server_tools set approved_hash = hash, approved_description = description, approved_schema = schema, approved_by = $4, approved_at = $5
			where server_id = $1 and name = $2 and hash = $3`, serverID, t.Name, t.Hash, userID, ident.Now())
		if err != nil {
			return Server{}, err
		}
		if tag.RowsAffected() == 0 {
			return Server{}, fault.Invalid("the server lists no tool %s with this hash: look at it again", t.Name)
		}
	}
	return server, nil
}

// listed is a tool of a list, to be written.
type listed struct {
	Name        string          `json:"name"`
	Tool        string          `json:"tool"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Idempotent  bool            `json:"idempotent"`
	Hash        string          `json:"hash"`
}

// writeList puts a list in the place of the last one; approver is who approves all of it, empty for nobody.
func writeList(ctx context.Context, tx pgx.Tx, tenantID, serverID, approver string, tools []listed) error {
	if _, err := tx.Exec(ctx, `delete from tool_server_tools where server_id = $1 and not name = any($2)`, serverID, namesOf(tools)); err != nil {
		return err
	}
	var by *string
	if approver != "" {
		by = &approver
	}
	var b pgx.Batch
	for _, t := range tools {
		b.Queue(`insert into tool_server_tools as old (tenant_id, server_id, name, tool, description, schema, idempotent, hash, approved_hash, approved_description, approved_schema,
				approved_by, approved_at)
			select $1, $2, $3, $4, $5, $6::json, $7, $8, case when $9::uuid is not null then $8 end, case when $9::uuid is not null then $5 end,
				case when $9::uuid is not null then $6::json end, $9::uuid, case when $9::uuid is not null then clock_timestamp() end
			on conflict (tenant_id, server_id, name) do update set tool = excluded.tool, description = excluded.description, schema = excluded.schema,
				idempotent = excluded.idempotent, hash = excluded.hash where old.hash <> excluded.hash`,
			tenantID, serverID, t.Name, t.Tool, t.Description, string(t.Schema), t.Idempotent, t.Hash, by)
	}
	return tx.SendBatch(ctx, &b).Close()
}

func namesOf(tools []listed) []string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	return names
}
