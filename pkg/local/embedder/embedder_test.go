package embedder

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/embed"
)

func vectorsOf(t testing.TB, texts ...string) [][]float32 {
	t.Helper()
	e, err := New(0)
	require.NoError(t, err)
	r, err := e.Embed(t.Context(), embed.Document, texts)
	require.NoError(t, err)
	return r.Vectors
}

// Vectors are kept in databases. Where this fails, either they are not the same on this machine, or features have changed: then Model has to.
func TestVectorsStay(t *testing.T) {
	require.Equal(t, "local.hashed-1", Model)
	require.Equal(t, 384, Dimension)
	sum := sha256.New()
	for _, v := range vectorsOf(t, "The contact person at Nordwind Logistics is Jonas Weidner, head of the Bremen warehouse.", "1,140 luminaires in 4 halls (38 W)",
		"Die Straßenlaternen werden nach Mitternacht gedimmt.", "L'éclairage est coupé entre minuit et cinq heures.", "大阪の倉庫には照明が六百台設置されている。",
		strings.Repeat("Größe ", 1000), "!", "\u200b", "ﾃｽﾄ ｶﾞｲﾄﾞ", "ﬁne ①", "Ἀθῆναι", "Жёлтый", "서울 사무실", "กรุงเทพ") {
		for _, x := range v {
			require.NoError(t, binary.Write(sum, binary.BigEndian, math.Float32bits(x)))
		}
	}
	require.Equal(t, "0050a0544a44f077e2a52a768b45dde81f5c35a595ca9d727d1d03460699884b", hex.EncodeToString(sum.Sum(nil)))
}

func TestTokens(t *testing.T) {
	for text, want := range map[string][]token{
		"":                          {},
		" .-! ":                     {},
		"The customer's VAT-number": {{"the", letters, true}, {"customer", letters, false}, {"s", letters, false}, {"vat", letters, true}, {"number", letters, false}},
		"1,140 lamps, 4.2.":         {{"1140", letters, true}, {"lamps", letters, false}, {"42", letters, true}},
		"Straße GRÖSSE":             {{"strasse", letters, true}, {"grosse", letters, true}},
		"L'été":                     {{"l", letters, true}, {"ete", letters, false}},
		"e\u0301te\u0301":           {{"ete", letters, false}},
		"ＡＢＣ１２":                     {{"abc12", letters, true}},
		"ﾃﾞｰﾀを東京で":                  {{"データ", kana, false}, {"を", hira, false}, {"東京", han, false}, {"で", hira, false}},
		"がか":                        {{"がか", hira, false}},
		"İstanbul":                  {{"istanbul", letters, true}},
		"x\u200by":                  {{"x", letters, false}, {"y", letters, false}},
		"a😀b":                       {{"a", letters, false}, {"b", letters, false}},
		"Ё ё":                       {{"е", letters, true}, {"е", letters, false}},
	} {
		require.Equal(t, want, tokens(text), "%q", text)
	}
}

// The forms of a word leave the same; words that only begin alike do not.
func TestStem(t *testing.T) {
	for _, same := range [][]string{
		{"deliver", "delivers", "delivered", "delivering", "delivery", "deliveries"},
		{"plan", "plans", "planned", "planning"},
		{"invoice", "invoices", "invoiced", "invoicing"},
		{"lieferung", "lieferungen", "liefern", "liefert"},
		{"leuchte", "leuchten"},
		{"livraison", "livraisons"},
		{"commande", "commandes", "commander"},
	} {
		for _, word := range same[1:] {
			require.Equal(t, stem(same[0]), stem(word), word)
		}
	}
	for _, pair := range [][2]string{{"order", "ordinary"}, {"contract", "contact"}, {"price", "prize"}, {"house", "hours"}} {
		require.NotEqual(t, stem(pair[0]), stem(pair[1]))
	}
	require.Equal(t, "2029s", stem("2029s"), "numbers have no endings")
	require.Equal(t, "bus", stem("bus"))
}

// Case, accents, width and endings do not tell texts apart; what they are about does.
func TestLikeness(t *testing.T) {
	for _, c := range []struct {
		a, b     string
		from, to float64
	}{
		{"Größe der Straße", "GRÖSSE DER STRASSE", 0.85, 1},
		{"déjà commandé à Lyon", "deja commande a Lyon", 0.99, 1},
		{"ABC 12", "ＡＢＣ １２", 0.999, 1},
		{"Invoices for Nordwind", "the invoice of Nordwind", 0.7, 1},
		{"configuration", "configuratoin", 0.1, 0.8}, // a slip of the pen
		{"大阪の倉庫", "大阪倉庫", 0.7, 1},
		{"the of and to in", "what is it that you are", -0.2, 0.2},
		{"Calder Shipyard paint hall", "Ostara Foods cold store", -0.2, 0.25},
	} {
		v := vectorsOf(t, c.a, c.b)
		got := cosine(v[0], v[1])
		require.GreaterOrEqual(t, got, c.from, "%s / %s", c.a, c.b)
		require.LessOrEqual(t, got, c.to+1e-6, "%s / %s", c.a, c.b)
	}
}

// A word that is said a hundred times weighs ten times as much, not a hundred.
func TestRepetitionIsDamped(t *testing.T) {
	once, many := featuresOf("lamp"), featuresOf(strings.Repeat("lamp the ", 100))
	of := func(f features) (weight int64) {
		sums := make([]int64, 1<<20) // so many that no two fall on the same
		spread(f, sums)
		return max(sums[indexOf(hash('w', "lamp"), len(sums))], -sums[indexOf(hash('w', "lamp"), len(sums))])
	}
	require.Equal(t, 10*of(once), of(many))
}

// indexOf is the first place of a feature.
func indexOf(h uint64, size int) int { return int(mix(h) % uint64(size)) }

func TestDimensionIsChecked(t *testing.T) {
	for _, dimension := range []int{-1, 1, 63, 4097} {
		_, err := New(dimension)
		require.ErrorContains(t, err, "64 to 4,096")
	}
	e, err := New(4096)
	require.NoError(t, err)
	require.Equal(t, "local.hashed-1/4096", embed.Space(e))
}

// Whatever the text, its vector has length 1 and comes again.
func FuzzEmbed(f *testing.F) {
	for _, one := range readFacts(f)[:20] {
		f.Add(one.Fact)
	}
	for _, text := range []string{"!", "\x00", "\xff", "ーーー", "1,2,3.4", "\u0301\u0301", "﷽", strings.Repeat("\u1100\u1161", 200), "́", "👩‍👩‍👧", "ßẞ"} {
		f.Add(text)
	}
	e, err := New(64)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := e.Embed(t.Context(), embed.Document, []string{text, "x", text})
		if err != nil {
			require.Empty(t, strings.TrimSpace(embed.Cut(text, embed.MaxCharacters)))
			return
		}
		require.InDelta(t, 1, cosine(r.Vectors[0], r.Vectors[0]), 1e-6)
		require.Equal(t, r.Vectors[0], r.Vectors[2])
	})
}

// One text is as long as a fact, or as long as a text may be.
func BenchmarkEmbed(b *testing.B) {
	e, err := New(0)
	require.NoError(b, err)
	facts := readFacts(b)
	var long strings.Builder
	for long.Len() < embed.MaxCharacters {
		for _, f := range facts {
			long.WriteString(f.Fact + " ")
		}
	}
	for name, text := range map[string]string{"fact": facts[0].Fact, "longest": long.String(), "oneword": strings.Repeat("x", embed.MaxCharacters)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Embed(b.Context(), embed.Document, []string{text}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "texts/s")
		})
	}
}
