package inbound

import (
	"regexp"
	"strings"
)

// divider stands in a text where HTML marks that the mails before it begin.
const divider = "-----Original Message-----"

var (
	// original is what Outlook and others write between an answer and the mail that it answers.
	original = regexp.MustCompile(`(?i)^[-_=* ]{2,}(?:original message|reply message|original-?nachricht|ursprüngliche nachricht|message d'origine|mensaje original|messaggio originale|oorspronkelijk bericht|originalmeddelande|oprindelig meddelelse)[-_=* ]{2,}$`)
	// forward begins a mail that was sent on: it is what its sender wants to be read.
	forward = regexp.MustCompile(`(?i)^(?:[-_=* ]{2,}(?:forwarded message|weitergeleitete nachricht|message transféré|mensaje reenviado|messaggio inoltrato)[-_=* ]{2,}|begin forwarded message:|anfang der weitergeleiteten nachricht:)$`)
	// wrote tells whose words follow: On Mon, Apr 2, 2012 at 6:26 PM, Ann <ann@example.com> wrote:
	wrote   = regexp.MustCompile(`(?i)^(?:on|am|le|el|il|op|den|på|em|w dniu)\s.{0,400}\s?(?:wrote|schrieb(?:\s.{1,200})?|a écrit|escribió|ha scritto|schreef(?:\s.{1,200})?|skrev(?:\s.{1,200})?|napisał(?:\(a\))?|escreveu)\s?:$`)
	opening = regexp.MustCompile(`(?i)^(?:on|am|le|el|il|op|den|på|em|w dniu)\s`)
	dated   = regexp.MustCompile(`^\d{4}[-/.]\d{1,2}[-/.]\d{1,2}\s.{0,200}<\S+@\S+>\s?:?$`)
	digit   = regexp.MustCompile(`\d`)
	ruler   = regexp.MustCompile(`^_{10,}$`)
	// from and field are the header that Outlook writes above a mail, in its user's language.
	from  = regexp.MustCompile(`(?i)^\*?(?:from|von|de|da|van|från|fra|od)\s?:\*?\s?\S`)
	field = regexp.MustCompile(`(?i)^\*?(?:from|sent|date|to|cc|subject|von|gesendet|datum|an|betreff|de|envoyé|à|objet|enviado(?: el)?|fecha|para|asunto|da|inviato|data|a|oggetto|van|verzonden|aan|onderwerp|från|skickat|till|ämne|fra|sendt|til|emne)\s?:\*?\s`)
	// device is what telephones add.
	device = regexp.MustCompile(`(?i)^(?:sent from my |sent from mail for |sent from outlook|get outlook for |von meinem .{1,40} gesendet|gesendet von |envoyé de mon |enviado desde mi |inviato da)`)
)

// trim leaves what the writer of a mail has written himself: the mails before it are left out, and what telephones add. Where he has written between or below
// the lines of the mail that he answers, all of it stays; so it does where nothing would be left.
func trim(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t")
	}
	end, whole := len(lines), false
	for i := range lines {
		if whole = forward.MatchString(lines[i]); whole {
			break
		}
		if n := history(lines[i:]); n > 0 && !answeredBelow(lines[i+n:]) {
			end = i
			break
		}
	}
	own := lines[:end]
	if end == len(lines) && !whole {
		own = withoutQuote(own)
	}
	if said := ending(own); said != "" {
		return said
	}
	return strings.TrimSpace(s)
}

// history is how many lines, the first ones, say that the mails before this one follow; 0: none does.
func history(lines []string) int {
	switch line := strings.TrimSpace(lines[0]); {
	case original.MatchString(line), dated.MatchString(line):
		return 1
	case ruler.MatchString(line):
		for i, next := range lines[1:min(len(lines), 4)] {
			if from.MatchString(next) && header(lines[1+i:]) > 0 {
				return 1
			}
		}
		return 0
	case from.MatchString(line):
		return header(lines)
	case opening.MatchString(line):
		return attribution(lines)
	}
	return 0
}

// header is how many lines the header has that a mail program has written there; what begins with From alone is none.
func header(lines []string) int {
	n := 0
	for n < len(lines) && n < 10 && field.MatchString(lines[n]+" ") {
		n++
	}
	if n < 3 {
		return 0
	}
	return n
}

// attribution is how many lines tell whose words follow: long ones were broken.
func attribution(lines []string) int {
	joined := ""
	for n := 1; n <= min(len(lines), 4); n++ {
		line := strings.TrimSpace(lines[n-1])
		if line == "" || n > 1 && opening.MatchString(line) || len(joined)+len(line) > 800 {
			return 0
		}
		joined = strings.TrimSpace(joined + " " + line)
		if wrote.MatchString(joined) {
			if !digit.MatchString(joined) { // without a date it is a sentence
				return 0
			}
			return n
		}
	}
	return 0
}

// answeredBelow reports whether something was written between or below the lines that are quoted there. Where they are not marked, nobody can tell.
func answeredBelow(lines []string) bool {
	quoted := false
	for _, line := range lines {
		switch {
		case strings.HasPrefix(line, ">"):
			quoted = true
		case line == "" || device.MatchString(line):
		case line == "--": // a signature
			return false
		case !quoted:
			return false
		default:
			return true
		}
	}
	return false
}

// withoutQuote leaves out the quoted lines at the end, if they are told to be somebody's words: above them in a way that trim does not know, or in themselves.
func withoutQuote(lines []string) []string {
	end := len(lines)
	for end > 0 && (lines[end-1] == "" || strings.HasPrefix(lines[end-1], ">")) {
		end--
	}
	rest := lines[end:]
	for len(rest) > 0 && rest[0] == "" {
		rest = rest[1:]
	}
	if len(rest) == 0 || end == 0 {
		return lines
	}
	if above := lines[end-1]; strings.HasSuffix(above, ":") && digit.MatchString(above) && strings.ContainsAny(above, "@<") {
		return lines[:end-1]
	}
	inner := make([]string, 0, 4)
	for _, line := range rest[:min(len(rest), 4)] {
		inner = append(inner, strings.TrimSpace(strings.TrimPrefix(line, ">")))
	}
	if history(inner) > 0 {
		return lines[:end]
	}
	return lines
}

// ending takes from the end what nobody has written.
func ending(lines []string) string {
	for len(lines) > 0 {
		last := strings.TrimSpace(lines[len(lines)-1])
		if last != "" && !ruler.MatchString(last) && !(len(last) < 100 && device.MatchString(last)) {
			break
		}
		lines = lines[:len(lines)-1]
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
