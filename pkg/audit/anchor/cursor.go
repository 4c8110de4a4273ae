package anchor

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agentplatform/agentplatform/pkg/audit/canonical"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// cursor reads a text of one form from front to back. Every method takes exactly one spelling of what it reads; the
// first thing that is not so is kept in err, and everything after that reads as zero.
type cursor struct {
	text []byte
	at   int
	err  error
}

func (c *cursor) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("byte %d: %s", c.at, fmt.Sprintf(format, args...))
	}
}

// starts reports whether s is next.
func (c *cursor) starts(s string) bool {
	return c.err == nil && len(c.text)-c.at >= len(s) && string(c.text[c.at:c.at+len(s)]) == s
}

func (c *cursor) literal(s string) {
	if !c.starts(s) {
		c.fail("not %s", s)
		return
	}
	c.at += len(s)
}

// uint reads a whole number within what every JSON reader holds exactly.
func (c *cursor) uint() uint64 {
	if c.err != nil {
		return 0
	}
	start := c.at
	for c.at < len(c.text) && c.at-start < 17 && c.text[c.at] >= '0' && c.text[c.at] <= '9' {
		c.at++
	}
	digits := string(c.text[start:c.at])
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || n > canonical.MaxInteger || digits[0] == '0' && n != 0 || digits[0] == '0' && len(digits) > 1 {
		c.at = start
		c.fail("not a whole number")
		return 0
	}
	return n
}

// plain reads a string without escapes of at most limit bytes, and gives them.
func (c *cursor) plain(limit int) string {
	c.literal(`"`)
	if c.err != nil {
		return ""
	}
	for i := c.at; i < len(c.text) && i <= c.at+limit; i++ {
		switch b := c.text[i]; {
		case b == '"':
			s := string(c.text[c.at:i])
			c.at = i + 1
			return s
		case b < 0x20 || b > 0x7e || b == '\\':
			c.fail("not plain text")
			return ""
		}
	}
	c.fail("not a string of at most %d bytes", limit)
	return ""
}

// string reads any canonical string.
func (c *cursor) string() string {
	if !c.starts(`"`) {
		c.fail("not a string")
		return ""
	}
	for i := c.at + 1; i < len(c.text); i++ {
		switch c.text[i] {
		case '\\':
			i++
		case '"':
			value := c.text[c.at : i+1]
			s, ok := canonical.Unquote(value)
			if err := canonical.Check(value); err != nil || !ok {
				c.fail("not a canonical string: %v", err)
				return ""
			}
			c.at = i + 1
			return s
		}
	}
	c.fail("a string without an end")
	return ""
}

// object reads any canonical object and gives its text.
func (c *cursor) object() []byte {
	if !c.starts("{") {
		c.fail("not an object")
		return nil
	}
	depth, quoted := 0, false
	for i := c.at; i < len(c.text); i++ {
		switch b := c.text[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case !quoted && b == '{':
			depth++
		case !quoted && b == '}':
			if depth--; depth > 0 {
				continue
			}
			value := c.text[c.at : i+1]
			if err := canonical.Check(value); err != nil {
				c.fail("not canonical: %v", err)
				return nil
			}
			c.at = i + 1
			return value
		}
	}
	c.fail("an object without an end")
	return nil
}

func (c *cursor) hash() (h merkle.Hash) {
	s := c.plain(64)
	if c.err == nil && !parseHash(&h, s) {
		c.fail("not a hash")
	}
	return h
}

// link reads the hash of what came before, or the word that nothing did.
func (c *cursor) link() string {
	s := c.plain(64)
	if c.err == nil && !isLink(s) {
		c.fail("neither a hash nor %s", Genesis)
	}
	return s
}

func (c *cursor) tenant() string {
	s := c.plain(36)
	if _, err := tenantBytes(s); c.err == nil && err != nil {
		c.fail("%v", err)
	}
	return s
}

func (c *cursor) cadence() uint64 {
	n, ok := ParseCadenceID(c.plain(len("cadence-000000000000")))
	if c.err == nil && !ok {
		c.fail("not a cadence id")
	}
	return n
}

func (c *cursor) time() ident.Time {
	s := c.plain(len(ident.TimeLayout))
	if c.err != nil {
		return ident.Time{}
	}
	t, err := time.Parse(ident.TimeLayout, s)
	if err != nil || t.Format(ident.TimeLayout) != s {
		c.fail("not a time")
	}
	return ident.Time{Time: t}
}

// end expects nothing more and gives the first error.
func (c *cursor) end() error {
	if c.err == nil && c.at != len(c.text) {
		c.fail("more than expected")
	}
	return c.err
}

func parseHash(h *merkle.Hash, s string) bool {
	if len(s) != 64 || strings.Trim(s, "0123456789abcdef") != "" {
		return false
	}
	_, err := hex.Decode(h[:], []byte(s))
	return err == nil
}

func isLink(s string) bool {
	var h merkle.Hash
	return s == Genesis || parseHash(&h, s)
}
