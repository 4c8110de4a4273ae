// Package embed is the port to embeddings: a text becomes a vector, and texts that say something alike have vectors that point alike.
//
// The adapters are pkg/cloud/titan (Amazon Titan Text Embeddings V2) and pkg/local/embedder (hashed words, on one machine). One contract test holds
// both.
//
// Invariants:
//   - As many vectors as texts, in their order, each of Dimension numbers, finite and of length 1: the cosine of two is their inner product.
//   - A text's vector depends on the text and the kind alone, never on what else is in the call. Of a text that is longer than MaxCharacters the
//     beginning counts; what is no UTF-8 in it counts as U+FFFD.
//   - All or nothing: with an error there are no vectors. Every error is a *model.Error, with a Message that a tenant may read. The tokens that were
//     used until then are told with it, as they are paid for.
//   - Vectors compare if their Space is the same, and only then. The dimension is data: nothing here is made for one of them.
package embed

import (
	"context"
	"fmt"
)

// Limits of one call. Whoever has more texts asks for them by slices.Chunk(texts, MaxTexts).
const (
	MaxTexts      = 256
	MaxCharacters = 8_000
)

// Kind says what a text is for. Models that were trained to tell the two apart have a vector of each; those that were not take no notice.
type Kind string

const (
	Document Kind = "document" // what is found
	Query    Kind = "query"    // what it is found by
)

// Embedder makes vectors. Implementations may be used by many goroutines at once.
type Embedder interface {
	// Model is the model's id, as the price list has it.
	Model() string
	// Dimension is how many numbers a vector has.
	Dimension() int
	// Embed makes a vector of each text, of up to MaxTexts; none may be blank. It ends soon after ctx does.
	Embed(ctx context.Context, kind Kind, texts []string) (Result, error)
}

// Result is what came of one call.
type Result struct {
	Vectors [][]float32
	Tokens  int // that the provider counted, for metering; 0 where nobody is paid
}

// Space names the vectors that may be compared with those of e: model and dimension, e.g. "amazon.titan-embed-text-v2:0/1024".
func Space(e Embedder) string { return fmt.Sprintf("%s/%d", e.Model(), e.Dimension()) }
