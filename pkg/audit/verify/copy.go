package verify

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// binaryCopy takes PostgreSQL's binary COPY format apart: a header, then tuples of fields, then a trailer. It is written to in any pieces, and hands over each
// tuple's fields, which are good until row returns; nil is null.
type binaryCopy struct {
	row    func(fields [][]byte) error
	fields [][]byte
	rest   []byte // an unfinished piece
	begun  bool
	ended  bool
}

var copySignature = []byte("PGCOPY\n\xff\r\n\x00")

var errCopy = errors.New("the database's answer is not binary COPY data")

// Write takes the next piece. Pieces usually end with a tuple, so nothing is copied.
func (c *binaryCopy) Write(p []byte) (int, error) {
	data := p
	if len(c.rest) > 0 {
		c.rest = append(c.rest, p...)
		data = c.rest
	}
	used, err := c.take(data)
	if err != nil {
		return 0, err
	}
	c.rest = append(c.rest[:0], data[used:]...)
	return len(p), nil
}

// take consumes whole tuples.
func (c *binaryCopy) take(data []byte) (used int, err error) {
	if !c.begun {
		const fixed = 11 + 4 + 4
		if len(data) < fixed {
			return 0, nil
		}
		extension := int(binary.BigEndian.Uint32(data[15:]))
		if !bytes.HasPrefix(data, copySignature) || extension > 1<<20 {
			return 0, errCopy
		}
		if len(data) < fixed+extension {
			return 0, nil
		}
		used, c.begun = fixed+extension, true
	}
	for {
		size, err := c.tuple(data[used:])
		if err != nil || size == 0 {
			return used, err
		}
		used += size
		if !c.ended {
			if err := c.row(c.fields); err != nil {
				return used, err
			}
		}
	}
}

// tuple finds the fields of the tuple that data begins with; 0 is not all of one.
func (c *binaryCopy) tuple(data []byte) (size int, err error) {
	if len(data) < 2 {
		return 0, nil
	}
	n := int16(binary.BigEndian.Uint16(data))
	if n < 0 {
		c.ended = true
		return 2, nil
	}
	c.fields = c.fields[:0]
	at := 2
	for range n {
		if len(data) < at+4 {
			return 0, nil
		}
		length := int(int32(binary.BigEndian.Uint32(data[at:])))
		at += 4
		if length < 0 {
			c.fields = append(c.fields, nil)
			continue
		}
		if len(data) < at+length {
			return 0, nil
		}
		c.fields = append(c.fields, data[at:at+length:at+length])
		at += length
	}
	return at, nil
}

// epoch is PostgreSQL's: 2000-01-01 in microseconds since 1970.
const epoch = 946_684_800_000_000

// row is an event's row, parts of the copied data.
type row struct {
	tenant             uuid
	position           int64
	event              uuid
	occurred, recorded micros
	actor, kind        []byte
	hash, prev         []byte // hexadecimal, or GENESIS
	cadence            int64
	text               []byte // the envelope; nil where only the hash was asked for
}

// columns are those that a row is made of, in its order.
const columns = "tenant_id, chain_position, event_id, occurred_at, recorded_at, actor, event_type, event_hash, prev_hash, cadence"

var errRow = errors.New("a row has other columns than it should")

// read takes a tuple's fields.
func (r *row) read(f [][]byte) error {
	if len(f) != 11 || len(f[0]) != 16 || len(f[1]) != 8 || len(f[2]) != 16 || len(f[3]) != 8 || len(f[4]) != 8 || len(f[9]) != 8 {
		return errRow
	}
	r.tenant, r.event = uuid(f[0]), uuid(f[2])
	r.position, r.cadence = int64(binary.BigEndian.Uint64(f[1])), int64(binary.BigEndian.Uint64(f[9]))
	r.occurred, r.recorded = instant(f[3]), instant(f[4])
	r.actor, r.kind, r.hash, r.prev, r.text = f[5], f[6], f[7], f[8], f[10]
	return nil
}

// instant reads a timestamptz; infinities come out as times that nothing agrees with.
func instant(field []byte) micros {
	return micros(int64(binary.BigEndian.Uint64(field)) + epoch)
}
