package embed_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/titan"
	"github.com/agentplatform/agentplatform/pkg/embed"
	"github.com/agentplatform/agentplatform/pkg/local/embedder"
	"github.com/agentplatform/agentplatform/pkg/model"
)

func TestContractLocal(t *testing.T) {
	for _, dimension := range []int{64, embedder.Dimension, 1024} {
		t.Run(fmt.Sprint(dimension), func(t *testing.T) {
			testContract(t, dimension, local(t, dimension))
		})
	}
}

// TestContractTitan is the SDK over Bedrock's wire form. What answers makes vectors as the local embedder does.
func TestContractTitan(t *testing.T) {
	for _, dimension := range []int{256, 512, 1024} {
		t.Run(fmt.Sprint(dimension), func(t *testing.T) {
			server := httptest.NewServer(bedrock(t))
			t.Cleanup(server.Close)
			client := bedrockruntime.New(bedrockruntime.Options{Region: "us-east-1", BaseEndpoint: &server.URL, HTTPClient: server.Client(),
				Credentials: credentials.NewStaticCredentialsProvider("AKIAIOSFODNN7EXAMPLE", "secret", ""), Retryer: aws.NopRetryer{}})
			e, err := titan.New(titan.Config{Client: client, Dimension: dimension})
			require.NoError(t, err)
			testContract(t, dimension, e)
		})
	}
}

func local(t *testing.T, dimension int) embed.Embedder {
	t.Helper()
	e, err := embedder.New(dimension)
	require.NoError(t, err)
	return e
}

// bedrock answers an InvokeModel of Titan V2.
func bedrock(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			InputText  string
			Dimensions int
			Normalize  bool
		}
		decoder := json.NewDecoder(r.Body)
		decoder.DisallowUnknownFields()
		assert.NoError(t, decoder.Decode(&asked))
		assert.Equal(t, "/model/amazon.titan-embed-text-v2:0/invoke", r.URL.Path)
		assert.True(t, asked.Normalize)
		e, err := embedder.New(asked.Dimensions)
		assert.NoError(t, err)
		made, err := e.Embed(r.Context(), embed.Document, []string{asked.InputText})
		assert.NoError(t, err)
		assert.NoError(t, json.NewEncoder(w).Encode(map[string]any{"embedding": made.Vectors[0], "inputTextTokenCount": len(asked.InputText)/5 + 1,
			"embeddingsByType": map[string]any{"float": made.Vectors[0]}}))
	}
}

// testContract is what holds for every Embedder.
func testContract(t *testing.T, dimension int, e embed.Embedder) {
	made := func(t *testing.T, texts ...string) [][]float32 {
		t.Helper()
		r, err := e.Embed(t.Context(), embed.Document, texts)
		require.NoError(t, err)
		require.Len(t, r.Vectors, len(texts))
		require.GreaterOrEqual(t, r.Tokens, 0)
		return r.Vectors
	}

	t.Run("names its space", func(t *testing.T) {
		require.Equal(t, dimension, e.Dimension())
		require.NotEmpty(t, e.Model())
		require.Equal(t, fmt.Sprintf("%s/%d", e.Model(), dimension), embed.Space(e))
	})

	t.Run("vectors have their dimension and length 1, whatever the text", func(t *testing.T) {
		for i, v := range made(t, "The order is late.", "a", "!", "🙂", "42", "東京の倉庫", "\xff\xfe", "e\u0301\u0301\u0301", "\u200b", "Ωμέγα", strings.Repeat("same ", 1000)) {
			require.Len(t, v, dimension)
			require.InDelta(t, 1, product(v, v), 1e-6, "text %d", i)
		}
	})

	t.Run("as many as texts, in their order, and each by itself", func(t *testing.T) {
		var texts []string
		for i := range embed.MaxTexts {
			texts = append(texts, fmt.Sprintf("Customer %d has ordered %d lamps.", i, i*i))
		}
		all := made(t, texts...)
		for _, i := range []int{0, 1, 100, embed.MaxTexts - 1} {
			require.Equal(t, made(t, texts[i])[0], all[i])
		}
		require.NotEqual(t, all[0], all[1])
		require.Empty(t, made(t))
		twice := made(t, "the same", "the same")
		require.Equal(t, twice[0], twice[1])
	})

	t.Run("what says something alike is nearer", func(t *testing.T) {
		v := made(t, "When do we deliver to the warehouse in Bremen?", "Deliveries for the Bremen warehouse arrive on Tuesdays.", "Priya is allergic to nuts.")
		require.Greater(t, product(v[0], v[1]), product(v[0], v[2])+0.1)
	})

	t.Run("of a longer text the beginning counts", func(t *testing.T) {
		beginning := strings.Repeat("ä", embed.MaxCharacters)
		v := made(t, beginning, beginning+" and more", beginning[:len(beginning)/2])
		require.Equal(t, v[0], v[1])
	})

	t.Run("what is refused says what", func(t *testing.T) {
		for message, texts := range map[string][]string{
			"Text 2 of 3 is blank":   {"a", " \t\n", "b"},
			"Text 1 of 1 is blank":   {strings.Repeat(" ", embed.MaxCharacters) + "behind"},
			"At most 256 texts":      make([]string, embed.MaxTexts+1),
			"there are 1000":         make([]string, 1000),
			"there is nothing to em": {""},
		} {
			r, err := e.Embed(t.Context(), embed.Document, texts)
			failed := failure(t, err)
			require.Equal(t, model.Invalid, failed.Reason)
			require.False(t, failed.Temporary())
			require.Contains(t, failed.Message, message)
			require.Nil(t, r.Vectors)
		}
	})

	t.Run("ends with its context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r, err := e.Embed(ctx, embed.Query, []string{"a"})
		require.Equal(t, model.Canceled, failure(t, err).Reason)
		require.ErrorIs(t, err, context.Canceled)
		require.Nil(t, r.Vectors)
	})

	t.Run("many at once", func(t *testing.T) {
		want := made(t, "one", "two")
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				r, err := e.Embed(t.Context(), embed.Query, []string{"one", "two"})
				assert.NoError(t, err)
				assert.Len(t, r.Vectors, 2)
			})
		}
		group.Wait()
		require.Equal(t, want, made(t, "one", "two"))
	})
}

func failure(t *testing.T, err error) *model.Error {
	t.Helper()
	var failed *model.Error
	require.ErrorAs(t, err, &failed)
	return failed
}

func product(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	if math.IsNaN(sum) {
		return math.Inf(-1)
	}
	return sum
}
