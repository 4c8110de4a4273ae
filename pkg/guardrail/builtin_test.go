package guardrail

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const pem = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,A1B2\n\nMIIEowIBAAKCAQEAwJ8v0Jt0Zk3q9m2\nMIIEowIBAAKCAQEAwJ8v0Jt0Zk3q9m2\nQUJDRA==\n-----END RSA PRIVATE KEY-----"

// What is between « and » is masked, and nothing else.
var samples = map[BuiltIn][]string{
	AWSAccessKey: {"id «AKIAIOSFODNN7EXAMPLE».", "«ASIAY34FZKBOKMUTVV7A»", "AKIAIOSFODNN7EXAMPL", "xAKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLEX", "«AKIA\u200bIOSFODNN7EXAMPLE»"},
	PrivateKey: {"here:\n«" + pem + "»\nbye", "«" + strings.ReplaceAll(pem, "\n", `\n`) + "»", "«-----BEGIN OPENSSH PRIVATE KEY-----\n" + strings.Repeat("b3BlbnNzaC1rZXktdjEAAAAABG5vbmU\n", 40) + "QUJD»\n\nThat was it.",
		"-----BEGIN PUBLIC KEY-----\nMIIEowIBAAKCAQEAwJ8v0Jt0Zk3q9m2\n-----END PUBLIC KEY-----", "A key begins with «-----BEGIN PRIVATE KEY-----», then Base64.",
		"«-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\nlQOYBF2lZk0BCADQm8P3iW9m8P3iW9m8\n=abcd\n-----END PGP PRIVATE KEY BLOCK-----»"},
	GitHubToken: {"«ghp_0123456789abcdefghijABCDEFGHIJ012345» is", "«github_pat_11ABCDEFG0abcdefghijkl_0123456789»", "ghp_0123456789", "«gho_0123456789abcdefghijABCDEFGHIJ012345»"},
	SlackToken:  {"«xoxb-123456789012-1234567890123-AbCdEfGhIj»", "«hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX».", "«xapp-1-A0123456789-1234»", "xoxo, love"},
	StripeKey:   {"«sk_live_4eC39HqLyjWDarjtT1zdp7dc»", "«rk_test_4eC39HqLyjWDarjtT1zdp7dc» ", "«whsec_4eC39HqLyjWDarjtT1zdp7dc+/=»", "pk_live_4eC39HqLyjWDarjtT1zdp7dc", "task_test_4eC39HqLyjWDarjtT1zdp7dc"},
	JWT:         {"Bearer «eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U», thanks", "eyJhbGciOiJIUzI1NiJ9"},
	Secret: {`AWS_SECRET_ACCESS_KEY=«wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY»`, `{"api_key": "«3f9a8b7c6d5e4f3a2b1c»"}`, "Authorization: Bearer «mF9b5f41JqM2x7Tz0qWe»", "password := '«Tr0ub4dor&3xyz9»'", "token: abcdefghijklmnopqrstuvwxyz",
		"secret = 0000000000000000000000", "tokens = 4096", "The password is in the safe, number 12.", "client_secret => «q7Jx0Zp4Lm9Vt2Ws8Kd3Rf6Hy1Bn5Gc0q7Jx0Zp4Lm9Vt2Ws8Kd3Rf6Hy1Bn5Gc0zzzzzzzzz» end"},
	EMail: {"Write to «ada@example.com».", "«ada.lovelace+notes@mail.example.co.uk»,", "«ａｄａ＠ｅｘａｍｐｌｅ．ｃｏｍ»", "«jürgen@müller.de»", "«a\u200bda@exam\u00adple.com»", "@ada", "ada@localhost", "user@", "«" + strings.Repeat("a", 64) + "@b.io»",
		"a@b.c", "<«ada@example.com»>", "mailto:«ada@example.com»?subject=x"},
	Phone:      {"«+49 30 1234567»", "call «+1 (555) 123-4567»!", "«(555) 123-4567»", "«555-123-4567»", "«0171 2345678» or", "«030/123 45 67»", "«+442071838750»", "01-02-2026", "2026-01-02", "2026-01-02T10:20:30Z", "1234567890", "10.000.000", "v1.2.3-45", "ISBN 978-3-16-148410-0", "12 345 678"},
	CreditCard: {"«4111 1111 1111 1111»", "card «5500000000000004».", "«3782-822463-10005»", "4111 1111 1111 1112", "1234567812345670", "order 12 «4111111111111111»", "«４１１１１１１１１１１１１１１１»", "00000000000000", "4111111111111111111111"},
	IBAN:       {"«DE89 3704 0044 0532 0130 00» please", "«GB29NWBK60161331926819».", "«de89370400440532013000»", "DE89370400440532013001", "GB29NWBK6016133192681", "«NO93 8601 1117 947» and more"},
	USSSN:      {"«078-05-1120»", "SSN «078 05 1120».", "000-12-3456", "666-12-3456", "912-12-3456", "078-05-11201", "078-05 1120", "1078-05-1120"},
	IPAddress:  {"from «192.168.1.20»", "«8.8.8.8».", "999.1.1.1", "1.2.3", "12:30:45", "«2001:db8::8a2e:370:7334»", "«2001:0db8:85a3:0000:0000:8a2e:0370:7334»", "std::vector", "«fe80::1:2:3»: up", "a:b"},
}

func TestWhatThePlatformKnows(t *testing.T) {
	require.Len(t, samples, len(builtIns))
	for b, texts := range samples {
		g := masking(t, Rule{BuiltIn: []BuiltIn{b}})
		for _, sample := range texts {
			var want strings.Builder
			for i, part := range strings.FieldsFunc("\x00"+sample, func(r rune) bool { return r == '»' }) {
				clear, secret, is := strings.Cut(part, "«")
				want.WriteString(clear)
				if is {
					want.WriteString("[" + string(b) + "]")
					require.NotEmpty(t, secret, i)
				}
			}
			text := strings.NewReplacer("«", "", "»", "").Replace(sample)
			d, err := Checker{}.Check(t.Context(), g, Output, []string{text})
			require.NoError(t, err)
			require.Equal(t, strings.TrimPrefix(want.String(), "\x00"), d.Texts[0], "%s in %q", b, text)
			if len(d.Spans) > 0 {
				require.Equal(t, builtIns[b].why, d.Reason)
			}
		}
	}
}

func TestPhrases(t *testing.T) {
	g := masking(t, Rule{Topic: &Topic{"pay", []string{"salary", "Salaries of the CEO", "Gehälter", "straße", "给与", "급여", "σπίτι"}}})
	for text, want := range map[string]string{
		"My salary?":                       "My [PAY]?",
		"SALARY":                           "[PAY]",
		"sálary":                           "[PAY]",
		"sa\u200blary":                     "[PAY]",
		"sаlаry":                           "[PAY]", // with Cyrillic а
		"ｓａｌａｒｙ":                           "[PAY]",
		"𝐬𝐚𝐥𝐚𝐫𝐲 now":                       "[PAY] now",
		"salaryman":                        "salaryman",
		"unsalary":                         "unsalary",
		"salary_2026":                      "[PAY]_2026",
		"salaries":                         "salaries",
		"The salaries  of—the\nC\u0327EO!": "The [PAY]!",
		"salaries of the" + strings.Repeat(" ", 17) + "CEO": "[PAY]",
		"salaries of the" + strings.Repeat(" ", 18) + "CEO": "salaries of the" + strings.Repeat(" ", 18) + "CEO",
		"die Gehalter, die GEHÄLTER, gehälter":              "die [PAY], die [PAY], [PAY]",
		"STRASSE":                                           "[PAY]",
		"社员的给与是":                                            "社员的[PAY]是",
		"급여는 얼마":                                            "[PAY]는 얼마",
		"ΣΠΊΤΙ":                                             "[PAY]",
		"sal" + strings.Repeat("\u200b", 17) + "ary":        "sal" + strings.Repeat("\u200b", 17) + "ary",
	} {
		d, err := Checker{}.Check(t.Context(), g, Input, []string{text})
		require.NoError(t, err)
		require.Equal(t, []string{want}, d.Texts, "%q", text)
	}
	d, err := Checker{}.Check(t.Context(), masking(t, Rule{Action: Block, Topic: &Topic{"pay rise", []string{"salary"}}}), Input, []string{"Hello.", "My salary?"})
	require.NoError(t, err)
	require.Equal(t, Decision{GuardrailID: "g", Stage: Input, Action: Block, Reason: "denied topic: pay rise", Spans: []Span{{"PAY_RISE", 1, 3, 9}}, Message: "This message was blocked by a guardrail."}, d)
}
