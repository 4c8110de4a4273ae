package space

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// FileName is a governance file, as the API names it: what agents must not do, and what they should know.
type FileName string

const (
	Guardrails FileName = "GUARDRAILS"
	Context    FileName = "CONTEXT"
)

// File is the name of the file itself.
func (n FileName) File() string { return string(n) + ".md" }

// GovernanceFile is one version of a space's governance file.
type GovernanceFile struct {
	SpaceID   string     `json:"spaceId"`
	File      FileName   `json:"file"`
	Version   int        `json:"version"`
	Content   string     `json:"content"`
	UserID    string     `json:"userId"`
	CreatedAt ident.Time `json:"createdAt"`
}

// Edit is what a caller writes.
type Edit struct {
	SpaceID *string  `json:"spaceId"` // nil: the tenant's default space
	File    FileName `json:"file"`
	Content string   `json:"content"`
}

const (
	maxContent = 64 << 10 // bytes
	preview    = 200      // characters of a file that its event shows
)

// Write adds a version; the events are for tx to record. Content that is the newest version's adds none, and is no event.
func Write(ctx context.Context, tx pgx.Tx, c tenant.Caller, e Edit) (GovernanceFile, []audit.Event, error) {
	if e.File != Guardrails && e.File != Context {
		return GovernanceFile{}, nil, fault.Invalid("file must be GUARDRAILS or CONTEXT")
	}
	if err := text.Check("content", e.Content, 0, maxContent); err != nil {
		return GovernanceFile{}, nil, err
	}
	spaceID, err := lock(ctx, tx, e.SpaceID)
	if err != nil {
		return GovernanceFile{}, nil, err
	}
	newest, err := newest(ctx, tx, spaceID, e.File)
	if err != nil {
		return GovernanceFile{}, nil, err
	}
	if newest.Version > 0 && newest.Content == e.Content {
		return newest, nil, nil
	}
	f := GovernanceFile{SpaceID: spaceID, File: e.File, Version: newest.Version + 1, Content: e.Content, UserID: c.UserID, CreatedAt: ident.Now()}
	_, err = tx.Exec(ctx, `insert into governance_files (tenant_id, space_id, file, version, content, user_id, created_at) values ($1, $2, $3, $4, $5, $6, $7)`,
		c.TenantID, f.SpaceID, f.File.File(), f.Version, f.Content, f.UserID, f.CreatedAt)
	return f, []audit.Event{f.edited()}, err
}

// newest is the newest version; version 0 when there was never one.
func newest(ctx context.Context, q postgres.Querier, spaceID string, file FileName) (GovernanceFile, error) {
	f, err := postgres.One(ctx, q, "file", func(row pgx.CollectableRow) (GovernanceFile, error) {
		f := GovernanceFile{SpaceID: spaceID, File: file}
		return f, row.Scan(&f.Version, &f.Content, &f.UserID, &f.CreatedAt)
	}, `select version, content, user_id, created_at from governance_files where space_id = $1 and file = $2 order by version desc limit 1`, spaceID, file.File())
	if fault.IsMissing(err) {
		return GovernanceFile{}, nil
	}
	return f, err
}

func (f GovernanceFile) edited() audit.Event {
	sum := sha256.Sum256([]byte(f.Content))
	return audit.Event{Type: audit.GovernanceFileEdited, ResourceType: "space", ResourceID: f.SpaceID, Payload: map[string]any{
		"file": f.File.File(), "spaceId": f.SpaceID, "contentSha256": hex.EncodeToString(sum[:]), "preview": first(f.Content, preview)}}
}

// first is the first n characters of s.
func first(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
