package embedder

import "strings"

// endings are those of English, German and French words, longest first; the language of a text is not asked for. What they leave is no word, and
// need not be one: the forms of a word leave the same.
var endings = []string{
	"ations", "ation", "ements", "ungen", "ement", "ments", "ssons",
	"ment", "ions", "ings", "ung", "ion", "ies", "ing", "ers", "ern", "est", "ees",
	"ed", "er", "es", "en", "em", "ee", "ez", "ly",
	"s", "e", "n", "y", "t",
}

// shortest is how many bytes an ending must leave.
const shortest = 4

// stem is a word without up to two endings. Numbers have none.
func stem(word string) string {
	if strings.ContainsAny(word, "0123456789") {
		return word
	}
	for range 2 {
		cut := word
		for _, ending := range endings {
			if len(word)-len(ending) >= shortest && strings.HasSuffix(word, ending) {
				cut = word[:len(word)-len(ending)]
				break
			}
		}
		if cut == word {
			break
		}
		word = cut
	}
	if n := len(word); n > shortest && word[n-1] == word[n-2] { // planned, plan
		word = word[:n-1]
	}
	return word
}
