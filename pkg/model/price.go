package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sort"
	"strings"
	"time"
)

// Prices is a table of what tokens cost, by model id and date. The zero table knows no model.
//
// As data (schema/prices.json) it is {"currency": "USD", "tokens": 1000000, "models": {id: [price, …]}}; a price is {from: first
// day UTC, input, output, cacheRead, cacheWrite: US dollars for a million tokens with at most six decimals, source, comment}.
type Prices struct {
	models map[string][]price // by ascending start
}

// price is what tokens cost from a day on, in micro-dollars for a million tokens.
type price struct {
	from                                 time.Time
	input, output, cacheRead, cacheWrite uint64
}

// scale: one million tokens, and also one million micro-dollars in a dollar.
const scale = 1_000_000

// maxPrice in micro-dollars for a million tokens (a dollar a token) keeps four products of 63-bit counts within 128 bits.
const maxPrice = scale * scale

type pricesFile struct {
	Comment  string                 `json:"comment"`
	Currency string                 `json:"currency"`
	Tokens   int                    `json:"tokens"`
	Models   map[string][]priceFile `json:"models"`
}

type priceFile struct {
	From       string       `json:"from"`
	Input      *json.Number `json:"input"`
	Output     *json.Number `json:"output"`
	CacheRead  *json.Number `json:"cacheRead"`
	CacheWrite *json.Number `json:"cacheWrite"`
	Source     string       `json:"source"`
	Comment    string       `json:"comment"`
}

// ParsePrices reads a table and refuses what it does not fully understand: unknown fields, missing prices, more than six decimals,
// two prices from the same day, a price without a source.
func ParsePrices(data []byte) (Prices, error) {
	var file pricesFile
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return Prices{}, fmt.Errorf("model: price table: %w", err)
	}
	if d.More() {
		return Prices{}, errors.New("model: price table: text after the table")
	}
	if file.Currency != "USD" || file.Tokens != scale {
		return Prices{}, errors.New("model: price table: want currency USD and tokens 1000000")
	}
	p := Prices{models: make(map[string][]price, len(file.Models))}
	for id, rows := range file.Models {
		if id == "" || len(rows) == 0 {
			return Prices{}, fmt.Errorf("model: price table: model %q has no price", id)
		}
		for _, row := range rows {
			parsed, err := row.parse()
			if err != nil {
				return Prices{}, fmt.Errorf("model: price table: %s: %w", id, err)
			}
			p.models[id] = append(p.models[id], parsed)
		}
		prices := p.models[id]
		sort.Slice(prices, func(i, j int) bool { return prices[i].from.Before(prices[j].from) })
		for i := 1; i < len(prices); i++ {
			if prices[i].from.Equal(prices[i-1].from) {
				return Prices{}, fmt.Errorf("model: price table: %s: two prices from the same day", id)
			}
		}
	}
	return p, nil
}

func (f priceFile) parse() (price, error) {
	from, err := time.Parse(time.DateOnly, f.From)
	if err != nil {
		return price{}, fmt.Errorf("from: want YYYY-MM-DD: %w", err)
	}
	if f.Source == "" {
		return price{}, errors.New("source is missing")
	}
	p := price{from: from}
	for _, field := range []struct {
		name  string
		value *json.Number
		to    *uint64
	}{
		{"input", f.Input, &p.input}, {"output", f.Output, &p.output},
		{"cacheRead", f.CacheRead, &p.cacheRead}, {"cacheWrite", f.CacheWrite, &p.cacheWrite},
	} {
		if field.value == nil {
			return price{}, fmt.Errorf("%s is missing", field.name)
		}
		if *field.to, err = parseMicros(field.value.String()); err != nil {
			return price{}, fmt.Errorf("%s: %w", field.name, err)
		}
	}
	return p, nil
}

// parseMicros reads a plain decimal exactly, never by way of a float.
func parseMicros(s string) (uint64, error) {
	whole, decimals, _ := strings.Cut(s, ".")
	if len(decimals) > 6 || len(whole) > 7 || len(whole) == 0 {
		return 0, fmt.Errorf("%q: want a decimal number with at most six decimals", s)
	}
	var n uint64
	for _, c := range whole + decimals + strings.Repeat("0", 6-len(decimals)) {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("%q: want a plain decimal number, not negative", s)
		}
		n = n*10 + uint64(c-'0')
	}
	if n > maxPrice {
		return 0, fmt.Errorf("%q: more than a dollar a token", s)
	}
	return n, nil
}

// profiles are the prefixes of Bedrock's cross-region inference profiles.
var profiles = []string{"global.", "us-gov.", "us.", "eu.", "apac.", "jp.", "au.", "ca."}

// find gives the prices of id. An id of its own wins (global profiles are cheaper than the regions'); else an ARN stands for
// the id at its end, and a profile for the model behind its prefix.
func (p Prices) find(id string) []price {
	if strings.HasPrefix(id, "arn:") {
		id = id[strings.LastIndexByte(id, '/')+1:]
	}
	if prices, ok := p.models[id]; ok {
		return prices
	}
	for _, prefix := range profiles {
		if base, ok := strings.CutPrefix(id, prefix); ok {
			return p.models[base]
		}
	}
	return nil
}

// Cost is what usage u of a model costs at a moment, in millionths of a US dollar. The four kinds of tokens are summed exactly and
// the sum is rounded once, half up, to the micro-dollar; a sum beyond int64 becomes the largest int64; a negative count is 0.
// known is false when the table has no price for the model at that time: the cost is then unknown, not nothing.
func (p Prices) Cost(modelID string, u Usage, at time.Time) (micros int64, known bool) {
	prices := p.find(modelID)
	i := sort.Search(len(prices), func(i int) bool { return prices[i].from.After(at) })
	if i == 0 {
		return 0, false
	}
	current := prices[i-1]
	var hi, lo uint64 // 128 bits of micro-dollars × scale
	for _, line := range [...]struct {
		tokens int
		price  uint64
	}{
		{u.InputTokens, current.input}, {u.OutputTokens, current.output},
		{u.CacheReadTokens, current.cacheRead}, {u.CacheWriteTokens, current.cacheWrite},
	} {
		h, l := bits.Mul64(uint64(max(line.tokens, 0)), line.price)
		var carry uint64
		lo, carry = bits.Add64(lo, l, 0)
		hi += h + carry
	}
	var carry uint64
	lo, carry = bits.Add64(lo, scale/2, 0)
	hi += carry
	if hi >= scale { // the quotient needs more than 64 bits
		return math.MaxInt64, true
	}
	quotient, _ := bits.Div64(hi, lo, scale)
	return int64(min(quotient, math.MaxInt64)), true
}
