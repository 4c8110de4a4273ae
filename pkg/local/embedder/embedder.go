// Package embedder makes embeddings on one machine: no network, no model file, and for the same text the same vector on every machine.
//
// A text is told by its features: the stems of its words, the letters that they are made of in groups, words that stand side by side, and for
// Chinese and Japanese characters and pairs of them. Each feature is hashed to a few of the vector's numbers, which it adds to or takes from. So texts
// are alike if they share words, or parts of words: it knows no meanings, and no word that says the same as another. What it is good for is measured
// by TestHitRate over the questions in testdata.
//
// Invariants, besides those of package embed:
//   - Nothing is counted over other texts, so no vector depends on what was embedded before.
//   - All sums are of whole numbers, and what is not is rounded the same way everywhere. Model changes when a vector does (TestVectorsStay).
//   - Memory is linear in the text's length, and so is time but for one sort.
package embedder

import (
	"context"
	"fmt"

	"github.com/agentplatform/agentplatform/pkg/embed"
)

// Model is the model's id, with the version of its features.
const Model = "local.hashed-1"

// Dimension is the usual one: with fewer numbers more features fall on the same.
const Dimension = 384

// Embedder implements embed.Embedder.
type Embedder struct{ dimension int }

// New makes an embedder of vectors of dimension numbers: 64 to 4,096; 0 is Dimension.
func New(dimension int) (*Embedder, error) {
	if dimension == 0 {
		dimension = Dimension
	}
	if dimension < 64 || dimension > 4096 {
		return nil, fmt.Errorf("embedder: a vector has 64 to 4,096 numbers, not %d", dimension)
	}
	return &Embedder{dimension}, nil
}

// Model implements embed.Embedder.
func (e *Embedder) Model() string { return Model }

// Dimension implements embed.Embedder.
func (e *Embedder) Dimension() int { return e.dimension }

// Embed implements embed.Embedder. Questions and documents are the same to it.
func (e *Embedder) Embed(ctx context.Context, _ embed.Kind, texts []string) (embed.Result, error) {
	prepared, err := embed.Prepare(texts)
	if err != nil {
		return embed.Result{}, err
	}
	vectors := make([][]float32, len(prepared))
	for i, text := range prepared {
		if err := ctx.Err(); err != nil {
			return embed.Result{}, embed.Failed(ctx, err)
		}
		vectors[i] = e.vector(text)
	}
	return embed.Result{Vectors: vectors}, nil
}

func (e *Embedder) vector(text string) []float32 {
	sums := make([]int64, e.dimension)
	spread(featuresOf(text), sums)
	numbers := make([]float64, e.dimension)
	for i, sum := range sums {
		numbers[i] = float64(sum)
	}
	if vector, ok := embed.Unit(numbers); ok {
		return vector
	}
	// Without a letter or a digit, or where features have cancelled each other out: the text as one feature.
	clear(numbers)
	numbers[hash('t', text)%uint64(e.dimension)] = 1
	vector, _ := embed.Unit(numbers)
	return vector
}
