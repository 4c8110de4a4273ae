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
	u := t.UTC()
	year, month, day := u.Date()
	if year < 0 || year > 9999 {
		return nil, fmt.Errorf("the year %d has no AWSDateTime", year)
	}
	hour, minute, second := u.Clock()
	b := append(make([]byte, 0, 32), '"') // digit by digit: lists are full of times, and a layout is read anew for each
	b = append(digits(b, year, 4), '-')
	b = append(digits(b, int(month), 2), '-')
	b = append(digits(b, day, 2), 'T')
	b = append(digits(b, hour, 2), ':')
	b = append(digits(b, minute, 2), ':')
	b = append(digits(b, second, 2), '.')
	return append(digits(b, u.Nanosecond()/1000, 6), 'Z', '"'), nil
}

// digits appends n with leading zeros.
func digits(b []byte, n, width int) []byte {
	at := len(b)
	b = append(b, "000000"[:width]...)
	for i := at + width - 1; i >= at; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return b
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
