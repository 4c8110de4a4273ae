// Package page is keyset paging: a page of T, and the opaque token that asks for the next one.
//
// A token holds the last item's sort key, bound by a MAC to the tenant, the operation and the filter it was made for:
// a forged or foreign token, or one for another filter, is a ValidationError.
package page

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// Page is one page of a list.
type Page[T any] struct {
	Items     []T     `json:"items"`
	NextToken *string `json:"nextToken"` // null on the last page
}

// The bounds of a list's limit argument.
const (
	DefaultLimit = 50
	MaxLimit     = 100
)

// Request is a list operation's paging arguments.
type Request struct {
	Limit     *int    `json:"limit"`
	NextToken *string `json:"nextToken"`
}

// size is the number of items asked for.
func (r Request) size() (int, error) {
	if r.Limit == nil {
		return DefaultLimit, nil
	}
	if *r.Limit < 1 || *r.Limit > MaxLimit {
		return 0, fault.Invalid("limit must be from 1 to %d", MaxLimit)
	}
	return *r.Limit, nil
}

// Key makes and checks tokens. All instances of a deployment share it.
type Key []byte

const macSize = 16

// List answers one list call: it opens the token, reads one item more than the page holds to learn whether there is a next one, and cuts.
// scope names the list (tenant, operation, filter): a token is good for that list only.
func List[T, C any](k Key, r Request, cursor func(T) C, read func(after *C, limit int) ([]T, error), scope ...any) (Page[T], error) {
	size, after, err := Start[C](k, r, scope...)
	if err != nil {
		return Page[T]{}, err
	}
	items, err := read(after, size+1)
	if err != nil {
		return Page[T]{}, err
	}
	return Cut(k, items, size, cursor, scope...), nil
}

// Nested answers the same list call under several parents at once: read gives up to limit items a parent, by the parent's name. A token
// was made for one parent, so it is only good where there is one.
func Nested[P, T, C any](k Key, r Request, parents []P, cursor func(T) C, read func(after *C, limit int) (map[string][]T, error),
	name func(P) (name string, scope []any)) ([]Page[T], error) {
	if r.NextToken != nil && len(parents) > 1 {
		return nil, fault.Invalid("the page token is not one of this list")
	}
	var first []any
	if len(parents) > 0 {
		_, first = name(parents[0])
	}
	size, after, err := Start[C](k, r, first...)
	if err != nil {
		return nil, err
	}
	items, err := read(after, size+1)
	if err != nil {
		return nil, err
	}
	pages := make([]Page[T], len(parents))
	for i, p := range parents {
		n, scope := name(p)
		pages[i] = Cut(k, items[n], size, cursor, scope...)
	}
	return pages, nil
}

// Start is the page's size and the cursor that it begins behind; nil for the first page.
func Start[C any](k Key, r Request, scope ...any) (size int, after *C, err error) {
	if size, err = r.size(); err != nil || r.NextToken == nil {
		return size, nil, err
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(*r.NextToken)
	if err != nil || strings.ContainsAny(*r.NextToken, "\r\n") || // base64 skips line ends
		len(raw) < macSize || !hmac.Equal(raw[:macSize], k.mac(raw[macSize:], scope)) {
		return 0, nil, fault.Invalid("the page token is not one of this list")
	}
	after = new(C)
	if err := json.Unmarshal(raw[macSize:], after); err != nil {
		return 0, nil, fault.Invalid("the page token is not one of this list")
	}
	return size, after, nil
}

// Cut makes a page of at most size items out of up to size+1: one more than the page means that there is a next one.
func Cut[T, C any](k Key, items []T, size int, cursor func(T) C, scope ...any) Page[T] {
	if items == nil {
		items = []T{}
	}
	if len(items) <= size {
		return Page[T]{Items: items}
	}
	items = items[:size]
	token := k.seal(cursor(items[size-1]), scope)
	return Page[T]{Items: items, NextToken: &token}
}

func (k Key) seal(cursor any, scope []any) string {
	body, _ := json.Marshal(cursor) // cursors are structs of strings and numbers
	return base64.RawURLEncoding.EncodeToString(append(k.mac(body, scope), body...))
}

func (k Key) mac(body []byte, scope []any) []byte {
	name, _ := json.Marshal(scope)
	h := hmac.New(sha256.New, k)
	h.Write(name)
	h.Write([]byte{0}) // JSON text holds no NUL: scope and body cannot run into each other
	h.Write(body)
	return h.Sum(nil)[:macSize]
}
