package local

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	netmail "net/mail"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/object"
)

// inboxPath takes mails in SES's place: POST /local/inbox?from=ann@example.com&to=support@in.localhost.localdomain, the body is the mail as it was sent.
// from and to are the envelope's (from may be empty; to may be there more than once). spf, dkim, dmarc, spam and virus are SES's verdicts, each PASS unless
// it is given.
const inboxPath = "/local/inbox"

const (
	maxMail    = 40 << 20 // bytes, as SES takes
	maxHeaders = 10 << 10 // bytes of headers in an event
)

var verdicts = []string{"spf", "dkim", "dmarc", "spam", "virus"}

// inbox plays SES: it puts a mail into the bucket, and calls the functions that take mails.
type inbox struct {
	domain string
	bucket *object.Bucket
	rows   manifest.Manifest
	invoke func(ctx context.Context, function string, payload any) error
}

func (p *Platform) inbox() *inbox {
	return &inbox{domain: mailDomain, bucket: p.store().In(mailBucket), rows: p.config.Rows, invoke: p.queue.Invoke}
}

// handler refuses pages of other sites: whoever writes a mail here is believed to be its sender.
func (b *inbox) handler() http.Handler { return http.NewCrossOriginProtection().Handler(b) }

func (b *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	in, err := envelopeOf(r, b.domain)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMail))
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		http.Error(w, "552 a mail has at most 40 MiB", http.StatusRequestEntityTooLarge)
		return
	} else if err != nil || len(raw) == 0 {
		http.Error(w, "the body is the mail as it was sent", http.StatusBadRequest)
		return
	}
	if err := b.take(r.Context(), in, raw); err != nil {
		slog.Error("a mail could not be taken", "error", err)
		http.Error(w, "451 the mail cannot be taken now", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"message_id": in.id}) // a client that is gone has no use for an error
}

// envelope is what SES knows of a mail beside its text.
type envelope struct {
	id, from   string
	recipients []string
	verdict    map[string]string
	at         time.Time
}

func envelopeOf(r *http.Request, domain string) (envelope, error) {
	query := r.URL.Query()
	in := envelope{id: strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(random(25))), from: query.Get("from"), verdict: map[string]string{}, at: time.Now().UTC()}
	if !query.Has("from") || strings.ContainsAny(in.from, "<>\r\n ") {
		return in, errors.New("from is the sender's address, or empty")
	}
	for _, to := range query["to"] {
		if strings.ContainsAny(to, "<>\r\n ") {
			return in, errors.New("to is the recipient's address")
		}
		if at := strings.LastIndexByte(to, '@'); at > 0 && strings.EqualFold(to[at+1:], domain) {
			in.recipients = append(in.recipients, to)
		}
	}
	if len(in.recipients) == 0 {
		return in, fmt.Errorf("550 5.1.1 mailbox unavailable: mail is received for %s", domain)
	}
	for _, name := range verdicts {
		status := query.Get(name)
		switch status {
		case "":
			status = "PASS"
		case "PASS", "FAIL", "GRAY", "PROCESSING_FAILED":
		default:
			return in, fmt.Errorf("%s is PASS, FAIL, GRAY or PROCESSING_FAILED", name)
		}
		in.verdict[name] = status
	}
	return in, nil
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}

// take does what a receipt rule says: S3 first, then Lambda, which nobody waits for.
func (b *inbox) take(ctx context.Context, in envelope, raw []byte) error {
	raw = append(in.headers(), raw...)
	if _, err := b.bucket.Put(ctx, "in/"+in.id, bytes.NewReader(raw), object.PutOptions{}); err != nil {
		return err
	}
	for _, row := range b.rows.Rows {
		for range row.Triggers("mail") {
			if err := b.invoke(ctx, row.Name, in.event(row.Name, raw)); err != nil {
				return err
			}
		}
	}
	return nil
}

// headers are those that SES puts in front.
func (e envelope) headers() []byte {
	var b bytes.Buffer
	word := func(name string) string { return strings.ToLower(e.verdict[name]) }
	fmt.Fprintf(&b, "Return-Path: <%s>\r\n", e.from)
	fmt.Fprintf(&b, "Received: from localhost (localhost [127.0.0.1])\r\n by inbound-smtp.%s.amazonaws.com with SMTP id %s\r\n for %s;\r\n %s\r\n", region, e.id, e.recipients[0], e.at.Format(time.RFC1123Z))
	fmt.Fprintf(&b, "X-SES-Spam-Verdict: %s\r\nX-SES-Virus-Verdict: %s\r\n", e.verdict["spam"], e.verdict["virus"])
	fmt.Fprintf(&b, "Received-SPF: %s (spfCheck: local) client-ip=127.0.0.1; envelope-from=%s; helo=localhost;\r\n", word("spf"), e.from)
	fmt.Fprintf(&b, "Authentication-Results: amazonses.com;\r\n spf=%s (spfCheck: local) client-ip=127.0.0.1; envelope-from=%s; helo=localhost;\r\n dkim=%s;\r\n dmarc=%s;\r\n", word("spf"), e.from, word("dkim"), word("dmarc"))
	return b.Bytes()
}

func (e envelope) event(function string, raw []byte) events.SimpleEmailEvent {
	verdict := func(name string) events.SimpleEmailVerdict {
		return events.SimpleEmailVerdict{Status: e.verdict[name]}
	}
	m := events.SimpleEmailMessage{Source: e.from, Timestamp: e.at, MessageID: e.id}
	m.Headers, m.HeadersTruncated = headersOf(raw)
	c := &m.CommonHeaders
	c.ReturnPath = e.from
	for _, h := range m.Headers {
		switch strings.ToLower(h.Name) {
		case "from":
			c.From = addresses(h.Value)
		case "to":
			c.To = addresses(h.Value)
		case "cc":
			c.Cc = addresses(h.Value)
		case "message-id":
			c.MessageID = h.Value
		case "date":
			c.Date = h.Value
		case "subject":
			c.Subject = decoded(h.Value)
		}
	}
	m.Destination = append(append([]string{}, c.To...), c.Cc...)
	return events.SimpleEmailEvent{Records: []events.SimpleEmailRecord{{EventVersion: "1.0", EventSource: "aws:ses", SES: events.SimpleEmailService{Mail: m,
		Receipt: events.SimpleEmailReceipt{Recipients: e.recipients, Timestamp: e.at, SpamVerdict: verdict("spam"), VirusVerdict: verdict("virus"), SPFVerdict: verdict("spf"),
			DKIMVerdict: verdict("dkim"), DMARCVerdict: verdict("dmarc"), ProcessingTimeMillis: 1,
			Action: events.SimpleEmailReceiptAction{Type: "Lambda", InvocationType: "Event", FunctionARN: "arn:aws:lambda:" + region + ":000000000000:function:" + functionPrefix + function}}}}}}
}

// headersOf are a mail's headers, unfolded, in their order.
func headersOf(raw []byte) (all []events.SimpleEmailHeader, truncated bool) {
	size := 0
	for line := range bytes.Lines(raw) {
		text := strings.TrimRight(string(line), "\r\n")
		if size += len(line); size > maxHeaders {
			return all, true
		}
		name, value, ok := strings.Cut(text, ":")
		switch {
		case text == "":
			return all, false
		case strings.TrimLeft(text, " \t") != text && len(all) > 0:
			all[len(all)-1].Value += " " + strings.TrimLeft(text, " \t")
		case ok:
			all = append(all, events.SimpleEmailHeader{Name: name, Value: strings.TrimSpace(value)})
		}
	}
	return all, false
}

// addresses are a header's; what is no list of them is one text.
func addresses(value string) (all []string) {
	list, err := netmail.ParseAddressList(value)
	if err != nil {
		return []string{value}
	}
	for _, a := range list {
		text, name := a.Address, a.Name
		if strings.ContainsAny(name, `()<>[]:;@\,."`) {
			name = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`
		}
		if name != "" {
			text = name + " <" + a.Address + ">"
		}
		all = append(all, text)
	}
	return all
}

// decoded is a header's text in letters; one that cannot be decoded stays as it is.
func decoded(value string) string {
	if text, err := new(mime.WordDecoder).DecodeHeader(value); err == nil {
		return text
	}
	return value
}
