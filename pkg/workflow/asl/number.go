package asl

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
)

// Number is a number as Data.
func Number[T int | int64](n T) json.Number { return json.Number(strconv.FormatInt(int64(n), 10)) }

// decimal is a number exactly: ±0.digits × 10^exponent. digits neither begin nor end with 0; zero has none.
type decimal struct {
	negative bool
	digits   string
	exponent int64
}

// exponents beyond are the same number to us: no text of Data has as many digits.
const maxExponent = 1 << 40

func exactly(n json.Number) decimal {
	text := string(n)
	var d decimal
	if d.negative = strings.HasPrefix(text, "-"); d.negative {
		text = text[1:]
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		exponent, err := strconv.ParseInt(text[i+1:], 10, 64)
		if errors.Is(err, strconv.ErrRange) || exponent > maxExponent || exponent < -maxExponent {
			exponent = maxExponent
			if text[i+1] == '-' {
				exponent = -maxExponent
			}
		}
		d.exponent, text = exponent, text[:i]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	digits := whole + fraction
	d.exponent += int64(len(whole))
	trimmed := strings.TrimLeft(digits, "0")
	d.exponent -= int64(len(digits) - len(trimmed))
	if d.digits = strings.TrimRight(trimmed, "0"); d.digits == "" {
		return decimal{}
	}
	return d
}

// compare is -1, 0 or 1 as a is less than, equal to or greater than b.
func compare(a, b json.Number) int {
	if a == b {
		return 0
	}
	x, y := exactly(a), exactly(b)
	switch {
	case x == y:
		return 0
	case x.digits == "":
		return sign(!y.negative, -1)
	case y.digits == "":
		return sign(!x.negative, 1)
	case x.negative != y.negative:
		return sign(!x.negative, 1)
	case x.exponent != y.exponent:
		return sign((x.exponent > y.exponent) != x.negative, 1)
	}
	return sign((x.digits > y.digits) != x.negative, 1)
}

// sign is n, or -n if not.
func sign(so bool, n int) int {
	if so {
		return n
	}
	return -n
}

// key is the same text for equal numbers, and for no others.
func (d decimal) key() string {
	return strconv.FormatBool(d.negative) + d.digits + "e" + strconv.FormatInt(d.exponent, 10)
}

// integer is a number that is written as one, as IntervalSeconds has to be: 5, not 5.0.
func integer(value any) (n int64, is bool) {
	number, is := value.(json.Number)
	if !is {
		return 0, false
	}
	n, err := strconv.ParseInt(string(number), 10, 64)
	return n, err == nil
}

// maxInteger is how far from 0 the intrinsic functions take integers: those that every JSON reader has exactly.
const maxInteger = 1 << 53

// rounded is the nearest integer, the greater of two, as the intrinsic functions round.
func rounded(value any) (n int64, is bool) {
	if n, is = integer(value); is {
		return n, n >= -maxInteger && n <= maxInteger
	}
	number, is := value.(json.Number)
	if !is {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(number), 64)
	if err != nil || math.Abs(f) > maxInteger {
		return 0, false
	}
	n = int64(math.Floor(f))
	if f-math.Floor(f) >= 0.5 {
		n++
	}
	return n, true
}
