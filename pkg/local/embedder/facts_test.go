package embedder

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/embed"
)

// fact is a line of testdata/facts.jsonl.
type fact struct {
	ID       string `json:"id"`
	Language string `json:"language"`
	Fact     string `json:"fact"`
	Question string `json:"question"` // none: the fact is there to be mistaken for another
}

func readFacts(t testing.TB) (facts []fact) {
	t.Helper()
	text, err := os.ReadFile("testdata/facts.jsonl")
	require.NoError(t, err)
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		var f fact
		require.NoError(t, json.Unmarshal(lines.Bytes(), &f))
		facts = append(facts, f)
	}
	return facts
}

// ranking is the places of all facts for a question, best first; those that do not fit it at all are left out.
type ranking []int

func (r ranking) place(of int) int { return slices.Index(r, of) + 1 }

// rank orders by score; what has the same is in the order of the file.
func rank(scores []float64) (r ranking) {
	for i, s := range scores {
		if s > 0 {
			r = append(r, i)
		}
	}
	slices.SortStableFunc(r, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	return r
}

// Both rankings of the search that these vectors are made for give their first 50, and 1/(60+place) for each.
const (
	candidates = 50
	fusion     = 60
)

// fused is reciprocal rank fusion.
func fused(size int, rankings ...ranking) ranking {
	scores := make([]float64, size)
	for _, r := range rankings {
		for place, i := range r[:min(len(r), candidates)] {
			scores[i] += 1 / float64(fusion+place+1)
		}
	}
	return rank(scores)
}

func byVector(question []float32, facts [][]float32) ranking {
	scores := make([]float64, len(facts))
	for i, f := range facts {
		scores[i] = cosine(question, f)
	}
	return rank(scores)
}

func cosine(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// fullText is a plain Okapi BM25 over words as they are: no stems, no stop words, and for languages without spaces no words. A database's full-text
// search is at least as good.
type fullText struct {
	words   []map[string]int
	lengths []int
	in      map[string]int // how many texts have a word
	mean    float64
}

func plainWords(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

func newFullText(facts []fact) *fullText {
	x := &fullText{in: map[string]int{}}
	total := 0
	for _, f := range facts {
		counts, words := map[string]int{}, plainWords(f.Fact)
		for _, w := range words {
			counts[w]++
		}
		for w := range counts {
			x.in[w]++
		}
		x.words, x.lengths, total = append(x.words, counts), append(x.lengths, len(words)), total+len(words)
	}
	x.mean = float64(total) / float64(len(facts))
	return x
}

func (x *fullText) rank(question string) ranking {
	const k, b = 1.2, 0.75
	scores := make([]float64, len(x.words))
	for _, w := range plainWords(question) {
		rare := math.Log(1 + (float64(len(x.words)-x.in[w])+0.5)/(float64(x.in[w])+0.5))
		for i, counts := range x.words {
			n := float64(counts[w])
			scores[i] += rare * n * (k + 1) / (n + k*(1-b+b*float64(x.lengths[i])/x.mean))
		}
	}
	return rank(scores)
}

// rates counts at which place each question's fact was found.
type rates struct{ questions, at1, at5, at10 int }

func (r *rates) count(place int) {
	r.questions++
	if place == 0 {
		return
	}
	for limit, n := range map[int]*int{1: &r.at1, 5: &r.at5, 10: &r.at10} {
		if place <= limit {
			*n++
		}
	}
}

func (r *rates) of(n int) float64 { return float64(n) / float64(r.questions) }

// A question finds the fact that answers it: 9 times in 10 among the first five, if vectors and words are searched together.
func TestHitRate(t *testing.T) {
	facts := readFacts(t)
	e, err := New(0)
	require.NoError(t, err)
	var vectors [][]float32
	for f := range slices.Chunk(facts, embed.MaxTexts) {
		var texts []string
		for _, one := range f {
			texts = append(texts, one.Fact)
		}
		made, err := e.Embed(t.Context(), embed.Document, texts)
		require.NoError(t, err)
		vectors = append(vectors, made.Vectors...)
	}
	words := newFullText(facts)
	found := map[string]*rates{}
	count := func(way string, place int) {
		if found[way] == nil {
			found[way] = &rates{}
		}
		found[way].count(place)
	}
	for i, f := range facts {
		if f.Question == "" {
			continue
		}
		asked, err := e.Embed(t.Context(), embed.Query, []string{f.Question})
		require.NoError(t, err)
		vector, text := byVector(asked.Vectors[0], vectors), words.rank(f.Question)
		hybrid := fused(len(facts), vector, text)
		count("vector", vector.place(i))
		count("full text", text.place(i))
		count("hybrid", hybrid.place(i))
		count("hybrid "+f.Language, hybrid.place(i))
		if p := hybrid.place(i); p == 0 || p > 5 {
			t.Logf("missed: %s (vector %d, full text %d, hybrid %d): %s", f.ID, vector.place(i), text.place(i), p, f.Question)
		}
	}
	for _, way := range []string{"vector", "full text", "hybrid", "hybrid en", "hybrid de", "hybrid fr", "hybrid ja"} {
		r := found[way]
		t.Logf("%-10s %d questions, hit rate at 1: %.3f, at 5: %.3f, at 10: %.3f", way, r.questions, r.of(r.at1), r.of(r.at5), r.of(r.at10))
	}
	require.GreaterOrEqual(t, found["hybrid"].questions, 250)
	require.GreaterOrEqual(t, found["hybrid"].of(found["hybrid"].at5), 0.9)
	require.GreaterOrEqual(t, found["vector"].of(found["vector"].at5), 0.85, "the vectors alone")
}
