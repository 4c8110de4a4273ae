package ident

import (
	"database/sql/driver"
	"fmt"
	"time"
)

// TimeLayout is AWSDateTime as the API spells it: UTC, exactly six fractional digits, Z. PostgreSQL keeps microseconds too.
const TimeLayout = "2006-01-02T15:04:05.000000Z"

// Time is an instant of the API: it reads from and writes to a database column, and is an AWSDateTime in JSON.
type Time struct{ time.Time }

// Now is the current instant, cut to what is stored.
func Now() Time { return Time{time.Now().UTC().Truncate(time.Microsecond)} }

func (t Time) String() string { return t.UTC().Format(TimeLayout) }

// MarshalJSON renders the AWSDateTime.
func (t Time) MarshalJSON() ([]byte, error) {
	return t.UTC().AppendFormat(make([]byte, 0, 32), `"`+TimeLayout+`"`), nil
}

// UnmarshalJSON reads an AWSDateTime, or any RFC 3339 instant.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	parsed, err := time.Parse(`"`+time.RFC3339Nano+`"`, string(b))
	if err != nil {
		return fmt.Errorf("not an instant: %s", b)
	}
	t.Time = parsed.UTC()
	return nil
}

// Scan reads a database column.
func (t *Time) Scan(src any) error {
	v, ok := src.(time.Time)
	if !ok {
		return fmt.Errorf("not an instant: %T", src)
	}
	t.Time = v.UTC()
	return nil
}

// Value writes a database column.
func (t Time) Value() (driver.Value, error) { return t.Time, nil }
