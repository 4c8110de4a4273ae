package integration

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/channel"
	"github.com/agentplatform/agentplatform/pkg/text"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// keys are what the delivery and its message are known by.
func (t Taking) keys() (keys []string) {
	if t.Delivery.ProviderID != nil && *t.Delivery.ProviderID != "" {
		keys = append(keys, "d:"+plain(*t.Delivery.ProviderID))
	}
	if t.Said.MessageKey != "" {
		keys = append(keys, "m:"+plain(t.Said.MessageKey))
	}
	return keys
}

// takeKeys queues the keys, first of all. Others with one of them wait here until this transaction is over, and fail if it is committed.
// What an operator has taken in again is new, and known from then on, so that the provider's own next try is none.
func (t Taking) takeKeys(b *pgx.Batch) {
	known := ``
	if t.Again {
		known = ` on conflict do nothing`
	}
	b.Queue(`insert into delivery_keys (tenant_id, source_id, key) select $1, $2, unnest($3::text[])`+known, t.Delivery.TenantID, t.Integration.ID, t.keys())
}

// maxKey is how long an outside id may be that is kept as it is, in bytes.
const maxKey = 1000

// plain is an outside id as it is kept: what no text column holds, or no index, is told apart by its hash.
func plain(s string) string {
	if len(s) <= maxKey && utf8.ValidString(s) && !strings.ContainsRune(s, 0) {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return "sha256:" + hex.EncodeToString(sum[:])
}

const maxTitle = 500 // bytes

func (t Taking) title() *string {
	title := t.Integration.Name
	if t.Said.Title != nil {
		title = strings.ReplaceAll(strings.ToValidUTF8(*t.Said.Title, "\uFFFD"), "\x00", "")
	}
	if len(title) > maxTitle {
		title = strings.ToValidUTF8(title[:maxTitle], "")
	}
	return &title
}

// metadata is the new thread's: what does not fit is left out.
func (t Taking) metadata() *string {
	if t.Said.Metadata == nil {
		return nil
	}
	raw, err := json.Marshal(t.Said.Metadata)
	if kept := string(raw); err == nil && thread.Check(nil, &kept) == nil {
		return &kept
	}
	return nil
}

// words are the message, who said it where, and where it is answered: the platform's word for it, which nobody outside writes.
func (t Taking) words() turn.Words {
	words := turn.Words{Body: t.Said.Body, UserID: t.UserID}
	type about struct {
		Kind        string          `json:"kind"`
		Provider    Provider        `json:"provider"`
		Integration string          `json:"integrationId"`
		Key         string          `json:"key"`
		Sender      channel.Sender  `json:"sender"`
		Address     json.RawMessage `json:"address,omitempty"`
	}
	all := about{"integration", t.Integration.Provider, t.Integration.ID, t.Said.Key, t.Said.Sender, t.Said.Address}
	nameless := all
	nameless.Key, nameless.Sender = "", channel.Sender{}
	for _, a := range []about{all, nameless} { // a name may have what no JSON of the database has
		metadata, err := json.Marshal(a)
		words.Metadata = new(string(metadata))
		if err == nil && text.CheckJSON("metadata", *words.Metadata) == nil {
			return words
		}
	}
	words.Metadata = new(`{"kind":"integration"}`)
	return words
}
