package embedder

import (
	"cmp"
	"math"
	"slices"
	"unicode/utf8"
)

// Weights of features. Those of a word's letters count together as much as letters says, so that long words do not outweigh others.
const (
	wordWeight    = 1000
	lettersWeight = 700  // of a word's groups of letters, together
	pairWeight    = 350  // of two words side by side
	emphasis      = 1.3  // for what begins with a capital or has a digit: names, and what is counted
	quiet         = 0.08 // for words that nearly every text has
	ideograph     = 500
	ideographs    = 900 // of two side by side
	katakana      = 1200
	hiragana      = 150 // mostly endings and particles
)

// places is how many numbers of the vector a feature goes to: with more of them two features are less often mistaken for each other.
const places = 4

// feature is something that a text has, by its hash.
type feature struct {
	hash   uint64
	weight int64
}

type features []feature

func (f *features) add(kind byte, name string, weight float64) {
	*f = append(*f, feature{hash(kind, name), int64(math.Round(weight))})
}

// featuresOf is all that counts of a text.
func featuresOf(text string) features {
	f := make(features, 0, len(text)*2+16)
	var before string // the word before, if it counts
	for _, t := range tokens(text) {
		if t.script != letters {
			f.character(t)
			before = ""
			continue
		}
		if common[t.text] || utf8.RuneCountInString(t.text) < 2 && !t.strong {
			f.add('w', t.text, wordWeight*quiet)
			continue // words on both sides of it are side by side
		}
		weight := 1.0
		if t.strong {
			weight = emphasis
		}
		root := stem(t.text)
		f.add('w', root, wordWeight*weight)
		f.groups(t.text, lettersWeight*weight)
		if before != "" {
			f.add('p', before+" "+root, pairWeight)
		}
		before = root
	}
	return f
}

// groups adds the groups of three to five letters of a word, its ends included. Their squares add up to that of weight.
func (f *features) groups(word string, weight float64) {
	marked := []rune("^" + word + "$")
	count := 0
	for n := 3; n <= 5; n++ {
		count += max(len(marked)-n+1, 0)
	}
	each := weight / math.Sqrt(float64(max(count, 1)))
	for n := 3; n <= 5; n++ {
		for i := 0; i+n <= len(marked); i++ {
			f.add('g', string(marked[i:i+n]), each)
		}
	}
}

// character adds a run of characters of a script that writes no spaces: each by itself where it means something, and each pair.
func (f *features) character(t token) {
	one, two := 0.0, float64(hiragana)
	switch t.script {
	case han:
		one, two = ideograph, ideographs
	case kana:
		f.add('w', t.text, katakana)
		two = ideographs / 2
	}
	run := []rune(t.text)
	for i := range run {
		if one > 0 {
			f.add('c', string(run[i]), one)
		}
		if i > 0 {
			f.add('c', string(run[i-1:i+1]), two)
		}
	}
}

// spread adds features to the numbers they hash to. What comes n times counts as much as the root of n.
func spread(f features, sums []int64) {
	slices.SortFunc(f, func(a, b feature) int { // most of the time goes here
		if a.hash != b.hash {
			return cmp.Compare(a.hash, b.hash)
		}
		return cmp.Compare(b.weight, a.weight)
	})
	for i := 0; i < len(f); {
		same := i + 1
		for same < len(f) && f[same].hash == f[i].hash {
			same++
		}
		weight := int64(math.Round(float64(f[i].weight) * math.Sqrt(float64(same-i))))
		h := f[i].hash
		for range places {
			h = mix(h)
			sign := int64(1)
			if h>>63 == 1 {
				sign = -1
			}
			sums[h%uint64(len(sums))] += sign * weight
		}
		i = same
	}
}

// hash is FNV-1a of a feature, mixed so that all of its bits are good.
func hash(kind byte, name string) uint64 {
	h := uint64(14695981039346656037)
	h = (h ^ uint64(kind)) * 1099511628211
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return mix(h)
}

// mix is the last step of SplitMix64.
func mix(h uint64) uint64 {
	h += 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
