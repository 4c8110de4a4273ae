package guardrail

import (
	"math"
	"net/netip"
	"strconv"
	"strings"
)

// digits are the digits of s.
func digits(s string) string {
	return strings.Map(func(r rune) rune {
		if !isDigit(r) {
			return -1
		}
		return r
	}, s)
}

// card reports whether s has the check digit of a payment card's number (ISO/IEC 7812-1, Luhn's formula).
func card(s string) bool {
	d := digits(s)
	if len(d) < 13 || len(d) > 19 || strings.Count(d, d[:1]) == len(d) {
		return false
	}
	sum := 0
	for i := range len(d) {
		n := int(d[len(d)-1-i] - '0')
		if i%2 == 1 {
			if n *= 2; n > 9 {
				n -= 9
			}
		}
		sum += n
	}
	return sum%10 == 0
}

// lengths are how long each country's account numbers are, from the IBAN registry (SWIFT, release 99).
var lengths = func() map[string]int {
	const registry = "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 " +
		"GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 " +
		"NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30"
	m := map[string]int{}
	for country := range strings.FieldsSeq(registry) {
		m[country[:2]], _ = strconv.Atoi(country[2:])
	}
	return m
}()

// iban reports whether s is an international bank account number: as long as its country's are, with the right check digits (ISO 13616, ISO 7064 mod 97).
func iban(s string) bool {
	s = strings.ToUpper(strings.NewReplacer(" ", "", "-", "").Replace(s))
	if len(s) != lengths[s[:2]] {
		return false
	}
	rest := 0
	for _, r := range s[4:] + s[:4] {
		switch {
		case isDigit(r):
			rest = (rest*10 + int(r-'0')) % 97
		default:
			rest = (rest*100 + int(r-'A') + 10) % 97
		}
	}
	return rest == 1
}

// ssn reports whether s can be a social security number of the United States: no part is all zeros, and no area is one that is never given out.
func ssn(s string) bool {
	area, group, serial := s[:3], s[4:6], s[7:]
	return s[3] == s[6] && area != "000" && area != "666" && area[0] != '9' && group != "00" && serial != "0000"
}

// phone reports whether s has as many digits as phone numbers have (ITU-T E.164), and is no date.
func phone(s string) bool {
	d := digits(s)
	if len(d) < 8 || len(d) > 15 || strings.Trim(d, "0") == "" {
		return false
	}
	if parts := strings.FieldsFunc(s, func(r rune) bool { return !isDigit(r) }); len(parts) == 3 && len(parts[0]) == 2 && len(parts[1]) == 2 && len(parts[2]) == 4 && s[0] == '0' {
		return false // 01-02-2026
	}
	return strings.Count(s, "(") == strings.Count(s, ")")
}

// address reports whether s is an IP address. Times of day have fewer colons than it takes.
func address(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

// random reports whether a value looks like one that a machine made up: letters and digits, with at least 3 bits in each.
func random(s string) bool {
	var counts [128]int
	letters, digits := 0, 0
	for i := range len(s) {
		c := s[i]
		if c >= 128 {
			return false
		}
		counts[c]++
		switch {
		case isDigit(rune(c)):
			digits++
		case isAlnum(rune(c)):
			letters++
		}
	}
	bits := 0.0
	for _, n := range counts {
		if n > 0 {
			share := float64(n) / float64(len(s))
			bits -= share * math.Log2(share)
		}
	}
	return letters > 0 && digits > 0 && bits >= 3
}
