package anchor

import (
	"fmt"
	"strconv"
	"strings"
)

// Prefixes of the keys in the audit bucket.
const (
	Prefix       = "anchors/" // + CadenceID + ".json": anchor objects
	BeaconPrefix = "heads/"   // + 12 digits + ".json": head beacons, numbered from 1 without gaps
	EventPrefix  = "events/"  // + tenant id + "/" + CadenceID + ".ndjson": canonical events in chain order, one a line
)

const maxNumber = 999_999_999_999 // what twelve digits hold

// CadenceID is the id of the n-th cadence.
func CadenceID(n uint64) string { return fmt.Sprintf("cadence-%012d", n) }

// ParseCadenceID is the number of the cadence; only the spelling of CadenceID, from 1 on, is taken.
func ParseCadenceID(id string) (uint64, bool) { return number(id, "cadence-", "") }

// Key is where the anchor of the n-th cadence is stored.
func Key(n uint64) string { return Prefix + CadenceID(n) + ".json" }

// ParseKey is the number of the anchor at key; only the spelling of Key is taken.
func ParseKey(key string) (uint64, bool) { return number(key, Prefix+"cadence-", ".json") }

// BeaconKey is where the n-th beacon is stored.
func BeaconKey(n uint64) string { return fmt.Sprintf("%s%012d.json", BeaconPrefix, n) }

// ParseBeaconKey is the number of the beacon at key; only the spelling of BeaconKey is taken.
func ParseBeaconKey(key string) (uint64, bool) { return number(key, BeaconPrefix, ".json") }

// EventsKey is where the events are stored that the n-th anchor covers first.
func EventsKey(tenantID string, n uint64) string {
	return EventPrefix + tenantID + "/" + CadenceID(n) + ".ndjson"
}

// ParseEventsKey takes EventsKey apart; only its spelling is taken.
func ParseEventsKey(key string) (tenantID string, n uint64, ok bool) {
	rest, ok := strings.CutPrefix(key, EventPrefix)
	if !ok {
		return "", 0, false
	}
	tenantID, rest, _ = strings.Cut(rest, "/")
	if _, err := tenantBytes(tenantID); err != nil {
		return "", 0, false
	}
	n, ok = number(rest, "cadence-", ".ndjson")
	return tenantID, n, ok
}

func number(s, prefix, suffix string) (uint64, bool) {
	digits, found := strings.CutPrefix(s, prefix)
	digits, ended := strings.CutSuffix(digits, suffix)
	if !found || !ended || len(digits) != 12 || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && n >= 1
}
