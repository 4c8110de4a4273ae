package inbound

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return raw
}

// compose is a mail of these header lines and this body.
func compose(body string, headers ...string) []byte {
	return []byte(strings.Join(headers, "\r\n") + "\r\n\r\n" + strings.ReplaceAll(body, "\n", "\r\n"))
}

func TestRepliesAsProgramsWriteThem(t *testing.T) {
	for name, want := range map[string]string{
		"ses-gmail-reply.eml":  "Test yes test",
		"reply-gmail.eml":      "Hello",
		"reply-outlook.eml":    "Hello",
		"reply-apple-mail.eml": "Hello",
		"reply-iphone.eml":     "Hello",
	} {
		got, err := Read(fixture(t, name))
		require.NoError(t, err, name)
		require.Equal(t, want, got.Own, name)
		require.Greater(t, len(got.Text), len(want), "all of it is there for who has not seen the rest")
		require.Empty(t, got.LeftOut, name)
	}
}

// The HTML of a mail is read when there is no text: Outlook's and Gmail's here.
func TestHTMLAlone(t *testing.T) {
	for name, want := range map[string]string{"reply-outlook.eml": "Allo! Follow up MIME!", "reply-gmail.eml": "Hello"} {
		raw := fixture(t, name)
		got, err := Read(bytes.ReplaceAll(raw, []byte("text/plain"), []byte("text/x-none")))
		require.NoError(t, err)
		require.Equal(t, want, got.Own, name)
	}
	got, err := Read(compose(`<html><head><title>no</title><style>p {}</style></head><body><p>Dear  agent,<br>see &lt;this&gt;:</p><ul><li>one</li><li>t<b>w</b>o</li></ul>
		<script>alert(1)</script><table><tr><td>a</td><td>b</td></tr></table><blockquote>quoted<br>twice</blockquote></body></html>`, "From: a@b.example", "Content-Type: text/html; charset=utf-8"))
	require.NoError(t, err)
	require.Equal(t, "Dear agent,\nsee <this>:\n\n- one\n- two\na b\n> quoted\n> twice", got.Text)
	got, err = Read(compose(`<div>yes</div><div id="appendonsend"></div><hr><div>the mail before</div>`, "Content-Type: text/html"))
	require.NoError(t, err)
	require.Equal(t, "yes", got.Own, "Outlook on the web")
}

func TestWhatIsTrimmed(t *testing.T) {
	for name, want := range map[string]string{
		"text-german-two-lines.txt":  "This is a reply with German quote multiline",
		"text-on-wrote-no-space.txt": "Awesome! I haven't had another problem with it.",
		"text-outlook-divider.txt":   "Outlook email reply with a team mention in the email body.",
		"text-hyphen-line.txt":       "Reply directly above hyphen line\n----------------------------------------------\nA bunch of stuff below hyphen.",
	} {
		require.Equal(t, want, trim(clean(string(fixture(t, name)))), name)
	}
	for text, want := range map[string]string{
		"yes\n\n-----Original Message-----\nFrom: x\nno":                                                         "yes",
		"ja\n\n-----Ursprüngliche Nachricht-----\nVon: x\nnein":                                                  "ja",
		"yes\n\n________________________________\nFrom: A <a@b.example>\nSent: Monday\nTo: B\nSubject: S\n\nold": "yes",
		"oui\n\nLe lun. 3 août 2026 à 10:00, Ann <a@b.example> a écrit :\n> vieux":                               "oui",
		"yes\n\nOn Mon, 2 Apr 2012 at 6:26 PM a very long name of somebody\n<a@b.example>\nwrote:\n\n> old":      "yes",
		"igen\n\n2026. aug. 3. 10:00 keltezéssel, Ann <a@b.example> írta:\n> régi":                               "igen",
		"yes\n\nSent from my iPhone": "yes",
		// What stays.
		"On Mon, 2 Apr 2012, Ann <a@b.example> wrote:\n> old\nmy answer below":  "On Mon, 2 Apr 2012, Ann <a@b.example> wrote:\n> old\nmy answer below",
		"On Mon, 2 Apr 2012, Ann <a@b.example> wrote:\n> one?\nyes\n> two?\nno": "On Mon, 2 Apr 2012, Ann <a@b.example> wrote:\n> one?\nyes\n> two?\nno",
		"look at this\n> error 5\n> error 6":                                    "look at this\n> error 5\n> error 6",
		"read this\n\n---------- Forwarded message ---------\nFrom: A <a@b.example>\nDate: Monday\nSubject: S\nTo: B\n\nOn Mon, 2 Apr 2012, C <c@d.example> wrote:\n> old": "read this\n\n---------- Forwarded message ---------\nFrom: A <a@b.example>\nDate: Monday\nSubject: S\nTo: B\n\nOn Mon, 2 Apr 2012, C <c@d.example> wrote:\n> old",
		"On Monday she wrote:\nnothing":                     "On Monday she wrote:\nnothing",
		"From: the beginning\nit is wrong":                  "From: the beginning\nit is wrong",
		"> only what was there":                             "> only what was there",
		"On Mon, 2 Apr 2012, Ann <a@b.example> wrote:\n> x": "On Mon, 2 Apr 2012, Ann <a@b.example> wrote:\n> x",
	} {
		require.Equal(t, want, trim(text), text)
	}
}

// What takes a time that grows with the square of a text would show here: 512 KiB of what each rule begins with.
func TestTrimmingIsLinear(t *testing.T) {
	for _, line := range []string{"On 1 a\n", ">\n", "From: x\n", "____________\n", "On 1 wrote\n", "Am 1 schrieb x\n", "> On 1\n", "\n"} {
		require.LessOrEqual(t, len(trim(strings.Repeat(line, maxText/len(line)))), maxText)
	}
}

func TestAttachmentsAreNamed(t *testing.T) {
	raw := compose(`--o
Content-Type: multipart/alternative; boundary=i

--i
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

Gr=FC=DFe
--i
Content-Type: text/html

<p>Gruesse</p>
--i--
--o
Content-Type: application/pdf; name="=?utf-8?q?Pr=C3=BCfung.pdf?="
Content-Disposition: attachment; filename="=?utf-8?q?Pr=C3=BCfung.pdf?="
Content-Transfer-Encoding: base64

JVBERg==
--o
Content-Type: image/png
Content-Disposition: inline
Content-ID: <logo>

png
--o
Content-Type: text/plain
Content-Disposition: attachment; filename="notes.txt"

not what was said
--o
Content-Type: message/rfc822

From: other@evil.example

an attached mail
--o--
`, "From: a@b.example", "Content-Type: multipart/mixed; boundary=o")
	got, err := Read(raw)
	require.NoError(t, err)
	require.Equal(t, "Grüße", got.Own)
	require.ElementsMatch(t, []string{"Prüfung.pdf", "notes.txt", "image/png", "message/rfc822"}, got.LeftOut)
	require.Equal(t, "Grüße\n\n[4 attachments were left out: "+strings.Join(got.LeftOut, ", ")+"]", got.Words(got.Own, 1000))

	one := Content{LeftOut: []string{"a.pdf"}}
	require.Equal(t, "[1 attachment was left out: a.pdf]", one.Words("", 1000))
	long := strings.Repeat("ü", 1000)
	require.Equal(t, "ü…\n\n[1 attachment was left out: a.pdf]", one.Words(long, 41), "the names stay, and no letter is cut in two")
	require.LessOrEqual(t, len(one.Words(long, 20)), 20)
	many := Content{LeftOut: make([]string, 50)}
	require.Contains(t, many.Words("x", 1000), "[50 attachments were left out: ")
	require.Equal(t, maxFiles, strings.Count(many.Words("x", 1000), ", "), "not all are named")
}

func TestAMailOf20MB(t *testing.T) {
	file := strings.Repeat(strings.Repeat("QUJD", 19)+"\r\n", 20<<20/78)
	got, err := Read(compose("--b\nContent-Type: text/plain\n\nhere\n--b\nContent-Type: video/mp4; name=v.mp4\nContent-Transfer-Encoding: base64\n\n"+file+"\n--b--\n", "Content-Type: multipart/mixed; boundary=b"))
	require.NoError(t, err)
	require.Equal(t, Content{Text: "here", Own: "here", LeftOut: []string{"v.mp4"}}, got)
	_, err = Read(make([]byte, MaxSize+1))
	require.Equal(t, errTooLarge, err)
	text, err := Read(compose(strings.Repeat("a line\n", 20<<20/7), "Content-Type: text/plain"))
	require.NoError(t, err)
	require.LessOrEqual(t, len(text.Text), maxText)
}

func TestBombs(t *testing.T) {
	nested := func(depth int) []byte {
		var b strings.Builder
		for i := range depth {
			fmt.Fprintf(&b, "Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n", i, i)
		}
		return []byte(b.String() + "Content-Type: text/plain\r\n\r\nin the middle\r\n")
	}
	got, err := Read(nested(maxNested))
	require.NoError(t, err)
	require.Equal(t, "in the middle", got.Text)
	_, err = Read(nested(maxNested + 1))
	require.Equal(t, errParts, err)
	for name, raw := range map[string][]byte{
		"deep":  nested(10_000),
		"wide":  compose(strings.Repeat("--b\n\n", 100_000), "Content-Type: multipart/mixed; boundary=b"),
		"text":  compose(strings.Repeat("--b\nContent-Type: text/plain\n\nx\n", 100_000), "Content-Type: multipart/mixed; boundary=b"),
		"again": compose(strings.Repeat("--b\nContent-Type: multipart/mixed; boundary=b\n\n", 10_000), "Content-Type: multipart/mixed; boundary=b"),
		"short": compose(strings.Repeat("---\n\n", 100_000), "Content-Type: multipart/mixed; boundary=\"-\""),
	} {
		_, err := Read(raw)
		require.Equal(t, errParts, err, name)
	}
	for _, field := range []string{"Content-Type: text/plain" + strings.Repeat(";", 1<<20), "Content-Type: a/b\nContent-Disposition: attachment; filename=" + strings.Repeat("x", 1<<20)} {
		_, err = Read(compose("--b\n"+field+"\n\nx\n--b--\n", "Content-Type: multipart/mixed; boundary=b"))
		require.Equal(t, errMIME, err, "%.30s", field)
	}
	got, err = Read(compose(strings.Repeat("<blockquote><div>", 10_000)+"x", "Content-Type: text/html"))
	require.NoError(t, err)
	require.Equal(t, ">>>>>>>>>> x", got.Text)
}

// FuzzRead: whatever a mail is, it is refused with a reason, or read as text that fits.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/*.eml")
	require.NoError(f, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, err := ReadHeader(raw)
		if err != nil {
			require.Equal(t, fault.ValidationError, fault.From(err).Type)
		} else {
			require.Equal(t, strings.ToLower(h.From.Address), h.From.Address)
			require.LessOrEqual(t, len(h.References), maxReferences)
			for _, text := range []string{h.Subject, h.From.Name} {
				require.True(t, utf8.ValidString(text))
				require.NotContains(t, text, "\n")
			}
			require.NotEmpty(t, h.Doubt(Receipt{Sender: "a@b.example", From: []string{h.From.Address}, SPF: Fail, DKIM: Gray, DMARC: Gray}, "support@in.example.com", h.Date))
		}
		c, err := Read(raw)
		if err != nil {
			require.Equal(t, fault.ValidationError, fault.From(err).Type)
			return
		}
		for _, text := range []string{c.Text, c.Own} {
			words := c.Words(text, 100)
			require.LessOrEqual(t, len(words), 100)
			require.True(t, utf8.ValidString(words))
			require.NotContains(t, words, "\x00")
			require.NotContains(t, words, "\r")
		}
	})
}
