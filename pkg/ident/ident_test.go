package ident

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestNewIsUUIDv7(t *testing.T) {
	before := time.Now().UnixMilli()
	for range 1000 {
		s := New()
		require.True(t, Valid(s))
		u, err := uuid.Parse(s)
		require.NoError(t, err)
		require.Equal(t, uuid.Version(7), u.Version())
		require.Equal(t, uuid.RFC4122, u.Variant())
		sec, nsec := u.Time().UnixTime()
		require.GreaterOrEqual(t, sec*1000+nsec/1e6, before)
	}
}

func TestDerive(t *testing.T) {
	of := New()
	one := Derive(of, "ab", "c")
	require.Equal(t, one, Derive(strings.ToUpper(of), "ab", "c"))
	require.True(t, Valid(one))
	require.Equal(t, of[:15], one[:15], "the time and the version")
	for _, other := range []string{of, Derive(of, "a", "bc"), Derive(of, "abc"), Derive(of), Derive(New(), "ab", "c")} {
		require.NotEqual(t, one, other)
	}
}

func TestValid(t *testing.T) {
	for s, want := range map[string]bool{
		"018f2f3e-7b1a-7c3d-8e4f-123456789abc":  true,
		"018F2F3E-7B1A-7C3D-8E4F-123456789ABC":  true,
		"018f2f3e7b1a7c3d8e4f123456789abc":      false,
		"018f2f3e-7b1a-7c3d-8e4f-123456789abg":  false,
		"018f2f3e-7b1a-7c3d-8e4f-123456789abc ": false,
		"":                                      false, "CHAT-1": false, "'; drop table threads; --aaaaaaaaaaaa": false,
	} {
		require.Equal(t, want, Valid(s), s)
	}
}

func TestParseThread(t *testing.T) {
	got, ok := ParseThread("CHAT-12")
	require.True(t, ok)
	require.Equal(t, Thread{"CHAT", 12}, got)
	for _, s := range []string{"", "CHAT", "CHAT-", "CHAT-0", "CHAT--1", "CHAT-01", "CHAT-+1", "chat-1", "CHAT-1 ", "-1", "CHAT-99999999999999999999", "CH\x00AT-1"} {
		_, ok := ParseThread(s)
		require.False(t, ok, s)
	}
}

func TestTimeHasSixDigits(t *testing.T) {
	b, err := json.Marshal(Time{time.Date(2026, 1, 2, 3, 4, 5, 60_000_000, time.FixedZone("", 3600))})
	require.NoError(t, err)
	require.Equal(t, `"2026-01-02T02:04:05.060000Z"`, string(b))
	var back Time
	require.NoError(t, json.Unmarshal(b, &back))
	require.Equal(t, "2026-01-02T02:04:05.060000Z", back.String())
	require.Error(t, json.Unmarshal([]byte(`"yesterday"`), &back))
}

func TestTimeIsItsLayout(t *testing.T) {
	for _, instant := range []time.Time{{}, time.Unix(0, 0), time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), time.Date(2024, 2, 29, 1, 2, 3, 4_005, time.FixedZone("", -7200)), time.Now()} {
		b, err := json.Marshal(Time{instant})
		require.NoError(t, err)
		require.Equal(t, `"`+Time{instant}.String()+`"`, string(b))
	}
	_, err := json.Marshal(Time{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)})
	require.Error(t, err)
}
