package asl

import (
	"fmt"
	"strconv"
	"strings"
)

// cursor reads paths and intrinsic functions.
type cursor struct {
	text string
	at   int
}

func (c *cursor) peek() byte {
	if c.at < len(c.text) {
		return c.text[c.at]
	}
	return 0
}

func (c *cursor) take(text string) bool {
	if !strings.HasPrefix(c.text[c.at:], text) {
		return false
	}
	c.at += len(text)
	return true
}

func (c *cursor) space() {
	for c.peek() == ' ' || c.peek() == '\t' || c.peek() == '\n' || c.peek() == '\r' {
		c.at++
	}
}

// wrong says what should be where the cursor is.
func (c *cursor) wrong(wanted string) error {
	return fmt.Errorf("%q: at character %d should be %s", clip(c.text), c.at+1, wanted)
}

// index reads an integer, if there is one.
func (c *cursor) index() (n int, has bool, err error) {
	start := c.at
	c.take("-")
	for c.peek() >= '0' && c.peek() <= '9' {
		c.at++
	}
	if c.at == start {
		return 0, false, nil
	}
	n64, err := strconv.ParseInt(c.text[start:c.at], 10, 32)
	if err != nil {
		return 0, false, fmt.Errorf("%q: no index: %q", clip(c.text), clip(c.text[start:c.at]))
	}
	return int(n64), true, nil
}

// quoted reads a text in quotes, in which a backslash takes the next character as it is.
func (c *cursor) quoted() (string, error) {
	quote := c.peek()
	var b strings.Builder
	for c.at++; c.at < len(c.text); c.at++ {
		switch b1 := c.text[c.at]; {
		case b1 == quote:
			c.at++
			return b.String(), nil
		case b1 == '\\' && c.at+1 < len(c.text):
			c.at++
			b.WriteByte(c.text[c.at])
		default:
			b.WriteByte(b1)
		}
	}
	return "", c.wrong("the end of a text in quotes")
}
