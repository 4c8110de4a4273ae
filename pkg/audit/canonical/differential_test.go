package canonical

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	cyberphone "github.com/cyberphone/json-canonicalization/go/src/webpki.org/jsoncanonicalizer"
	"github.com/gowebpki/jcs"
	"github.com/stretchr/testify/require"
)

// Our form is narrower than RFC 8785 on purpose: the libraries rightly take these, and write each with the bytes of another document.
var narrower = []string{wrongFraction, wrongMinusZero, wrongMagnitude, wrongDepth}

// What RFC 8785 does not take, but somebody does nevertheless: TestWhereLibrariesAreWrong has examples. gowebpki takes nothing of the kind.
var (
	cyberphoneTakes = []string{wrongUTF8, wrongSurrogate, wrongNumber, wrongByte}
	jsonTakes       = []string{wrongUTF8, wrongSurrogate, wrongTwice} // encoding/json: repairs the first two, and lets the last of two names win
)

// differ compares what we make of a text with what the libraries make of it: what we refuse it as, if we do, and an error when somebody is wrong.
func differ(text []byte) (what string, wrong error) {
	ours, err := Transform(nil, text)
	gowebpki, gowebpkiErr := jcs.Transform(text)
	other, cyberphoneErr := cyberphone.Transform(text)
	if err == nil {
		if !json.Valid(text) || Check(ours) != nil || gowebpkiErr != nil || string(gowebpki) != string(ours) {
			return "", fmt.Errorf("we take it, and gowebpki or encoding/json differ: %q\n%q\n%q %w", text, ours, gowebpki, gowebpkiErr)
		}
		if alone := ours[0] != '{' && ours[0] != '['; alone != (cyberphoneErr != nil) || !alone && string(other) != string(ours) { // it takes no value that stands alone
			return "", fmt.Errorf("we take it, and cyberphone differs: %q\n%q\n%q %w", text, ours, other, cyberphoneErr)
		}
		return "", nil
	}
	what = err.(*Error).What //nolint:errorlint // it is what Transform returns
	if gowebpkiErr == nil && !slices.Contains(narrower, what) {
		return what, fmt.Errorf("we refuse it, and gowebpki takes it: %q: %w\n%q", text, err, gowebpki)
	}
	if cyberphoneErr == nil && !slices.Contains(narrower, what) && !slices.Contains(cyberphoneTakes, what) {
		return what, fmt.Errorf("we refuse it, and cyberphone takes it: %q: %w\n%q", text, err, other)
	}
	if json.Valid(text) && !slices.Contains(narrower, what) && !slices.Contains(jsonTakes, what) {
		return what, fmt.Errorf("we refuse it, and it is JSON: %q: %w", text, err)
	}
	return what, nil
}

// differential runs that many documents, on both cores, from a seed of its own.
func differential(t *testing.T, documents int) {
	const workers = 2
	refused, failures := make([]map[string]int, workers), make([]error, workers)
	var all sync.WaitGroup
	for w := range workers {
		refused[w] = map[string]int{}
		all.Go(func() {
			g := generator{Rand: rand.New(rand.NewPCG(8785, uint64(w)))}
			for range documents / workers {
				what, err := differ(g.next())
				if err != nil {
					failures[w] = err
					return
				}
				refused[w][what]++
			}
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(failures...))
	total := map[string]int{}
	for _, counts := range refused {
		for what, n := range counts {
			total[what] += n
		}
	}
	t.Logf("%d documents; taken or refused as: %v", documents, total)
	require.Greater(t, total[""], documents/3)
	for _, what := range []string{wrongEnd, wrongTail, wrongByte, wrongUTF8, wrongControl, wrongEscape, wrongSurrogate, wrongTwice, wrongNumber, wrongFraction, wrongMinusZero, wrongMagnitude} {
		require.NotZero(t, total[what], "the generator makes no text of the kind: %s", what)
	}
}

func TestDifferential(t *testing.T) { differential(t, 20_000) }
