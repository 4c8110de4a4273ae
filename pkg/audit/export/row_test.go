package export

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/canonical"
	"github.com/agentplatform/agentplatform/pkg/audit/trail"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// strict reads a file by the grammar of RFC 4180 §2, and takes nothing else: lines end in CRLF, quotes are where they must be and nowhere else.
func strict(file string) (records [][]string, err error) {
	for len(file) > 0 {
		var record []string
		for {
			var cell string
			if strings.HasPrefix(file, `"`) {
				file = file[1:]
				for {
					before, after, ok := strings.Cut(file, `"`)
					if !ok {
						return nil, fmt.Errorf("record %d: a quoted cell does not end", len(records))
					}
					cell, file = cell+before, after
					if !strings.HasPrefix(file, `"`) {
						break
					}
					cell, file = cell+`"`, file[1:]
				}
				if !strings.ContainsAny(cell, ",\"\r\n") {
					return nil, fmt.Errorf("record %d: %q needs no quotes", len(records), cell)
				}
			} else {
				end := strings.IndexAny(file, ",\"\r\n")
				if end < 0 {
					return nil, fmt.Errorf("record %d: the last line has no end", len(records))
				}
				cell, file = file[:end], file[end:]
			}
			record = append(record, cell)
			if strings.HasPrefix(file, ",") {
				file = file[1:]
				continue
			}
			if !strings.HasPrefix(file, "\r\n") {
				return nil, fmt.Errorf("record %d: %.10q instead of a comma or CRLF", len(records), file)
			}
			file = file[2:]
			break
		}
		records = append(records, record)
	}
	return records, nil
}

func TestCells(t *testing.T) {
	for cell, want := range map[string]string{
		"":                   "",
		"plain":              "plain",
		"a,b":                `"a,b"`,
		`say "hi"`:           `"say ""hi"""`,
		"two\r\nlines":       "\"two\r\nlines\"",
		"line\nfeed":         "\"line\nfeed\"",
		" spaces stay ":      " spaces stay ",
		"ü €":                "ü €",
		"=1+1":               "'=1+1",
		"+41 44":             "'+41 44",
		"-1":                 "'-1",
		"@SUM(A1)":           "'@SUM(A1)",
		"\ttab":              "'\ttab",
		"\rreturn":           "\"'\rreturn\"",
		`=HYPERLINK("x",A1)`: `"'=HYPERLINK(""x"",A1)"`,
		"a=1":                "a=1",
		"'=1":                "'=1",
		`{"a":"=1"}`:         `"{""a"":""=1""}"`,
	} {
		require.Equal(t, want, string(appendCell(nil, cell)))
	}
}

// anEvent draws an event with texts that are awkward in either form.
func anEvent(t *rapid.T) trail.Event {
	text := rapid.StringOf(rapid.RuneFrom([]rune{'a', ',', '"', '\r', '\n', '\t', '\'', '=', '+', '-', '@', ' ', 'ü', '€', '😀', '\u2028', '<', '\\', 0x7f}))
	payload, err := canonical.Append(nil, map[string]any{text.Draw(t, "name"): text.Draw(t, "value")})
	require.NoError(t, err)
	moment := ident.Time{Time: time.UnixMicro(rapid.Int64Range(0, 4e15).Draw(t, "moment")).UTC()}
	return trail.Event{Envelope: audit.Envelope{EventID: ident.New(), TenantID: ident.New(), OccurredAt: moment, RecordedAt: moment, Actor: text.Draw(t, "actor"),
		ActorType: audit.ActorUser, Source: audit.SourceREST, Type: audit.AgentCreated, Payload: payload}, Hash: strings.Repeat("a1", 32), Prev: audit.Genesis}
}

func TestCSVIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := rapid.SliceOfN(rapid.Custom(anEvent), 0, 4).Draw(t, "events")
		file := CSV.appendHeader(nil)
		want := [][]string{names[:]}
		for i := range events {
			var err error
			file, err = CSV.appendEvent(file, &events[i])
			require.NoError(t, err)
			c := cells(&events[i])
			if actor := events[i].Actor; actor != "" && strings.ContainsRune("=+-@\t\r", rune(actor[0])) {
				c[4] = "'" + actor
			}
			want = append(want, c[:])
		}
		records, err := strict(string(file))
		require.NoError(t, err)
		require.Equal(t, want, records)

		// encoding/csv reads the same, but for CR LF in a cell, which it makes LF.
		reader := csv.NewReader(strings.NewReader(string(file)))
		reader.FieldsPerRecord = len(names)
		loose, err := reader.ReadAll()
		require.NoError(t, err)
		for _, record := range want {
			for i := range record {
				record[i] = strings.ReplaceAll(record[i], "\r\n", "\n")
			}
		}
		require.Equal(t, want, loose)
	})
}

func TestNDJSONIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := anEvent(t)
		line, err := NDJSON.appendEvent(nil, &e)
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(line), "\n"))
		require.True(t, strings.HasSuffix(string(line), "\n"))
		decoder := json.NewDecoder(strings.NewReader(string(line)))
		_, err = decoder.Token()
		require.NoError(t, err)
		want := cells(&e)
		for i, name := range names {
			got, err := decoder.Token()
			require.NoError(t, err)
			require.Equal(t, name, got)
			if name == "payload_json" {
				var payload json.RawMessage
				require.NoError(t, decoder.Decode(&payload))
				require.Equal(t, string(e.Payload), string(payload))
				continue
			}
			got, err = decoder.Token()
			require.NoError(t, err)
			require.Equal(t, want[i], got)
		}
	})
	require.Empty(t, NDJSON.appendHeader(nil))
}

// TestOnlyActorCanBeAFormula: what package doc promises for all other columns.
func TestOnlyActorCanBeAFormula(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := anEvent(t)
		for i, c := range cells(&e) {
			if names[i] != "actor" {
				require.NotContains(t, "=+-@\t\r", c[:1])
			}
		}
	})
	for _, typ := range audit.Types() {
		require.Regexp(t, `^[a-z]`, string(typ))
	}
}
