package local

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/local/bucket"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/object"
)

const mailText = "From: =?utf-8?q?J=C3=BCrgen?= <juergen@example.com>\r\nTo: Support <support@in.localhost.localdomain>,\r\n other@example.com\r\nCc: \"Doe, Jane\" <c@example.com>\r\n" +
	"Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nDate: Mon, 5 Dec 2016 18:40:08 -0800\r\nMessage-ID: <1@example.com>\r\n\r\nFrom: not a header\r\nHello\r\n"

type received struct {
	*inbox
	url      string
	invoked  []string
	payloads []events.SimpleEmailEvent
	refuse   error
}

func newInbox(t *testing.T) *received {
	server, err := bucket.Start(t.Context(), bucket.Config{Dir: t.TempDir(), RootKey: "root", RootSecret: "root-secret", ReaderKey: "reader", ReaderSecret: "reader-secret",
		Buckets: []bucket.Bucket{{Name: "mail"}}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })
	store := object.New(object.Config{Region: region, Endpoint: server.Endpoint(), AccessKey: "root", Secret: "root-secret", PathStyle: true})
	r := &received{}
	r.inbox = &inbox{domain: mailDomain, bucket: store.In("mail"), rows: manifest.Manifest{Rows: []manifest.Row{{Name: "receive-mail", On: []string{"mail"}}, {Name: "other", On: []string{"invoke"}}}},
		invoke: func(_ context.Context, function string, payload any) error {
			raw, err := json.Marshal(payload)
			require.NoError(t, err)
			var e events.SimpleEmailEvent
			require.NoError(t, json.Unmarshal(raw, &e))
			r.invoked, r.payloads = append(r.invoked, function), append(r.payloads, e)
			return r.refuse
		}}
	web := httptest.NewServer(r.inbox.handler())
	t.Cleanup(web.Close)
	r.url = web.URL
	return r
}

func (r *received) post(t *testing.T, query url.Values, body string, headers ...string) (int, map[string]string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"?"+query.Encode(), strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	said := map[string]string{}
	if answer.StatusCode == http.StatusOK {
		require.NoError(t, json.NewDecoder(answer.Body).Decode(&said))
	}
	return answer.StatusCode, said
}

func (r *received) stored(t *testing.T) (keys []string) {
	for o, err := range r.bucket.List(t.Context(), "", "") {
		require.NoError(t, err)
		keys = append(keys, o.Key)
	}
	return keys
}

func TestTheInboxPlaysSES(t *testing.T) {
	r := newInbox(t)
	status, said := r.post(t, url.Values{"from": {"juergen@example.com"}, "to": {"Support@IN.localhost.localdomain", "other@example.com", "b@in.localhost.localdomain"}, "spf": {"FAIL"}, "spam": {"GRAY"}}, mailText)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, []string{"receive-mail"}, r.invoked)
	require.Len(t, r.payloads[0].Records, 1)
	record := r.payloads[0].Records[0]
	require.Equal(t, "aws:ses", record.EventSource)

	m, receipt := record.SES.Mail, record.SES.Receipt
	require.Equal(t, said["message_id"], m.MessageID)
	require.Len(t, m.MessageID, 40)
	require.Equal(t, "juergen@example.com", m.Source)
	require.Equal(t, []string{"Support@IN.localhost.localdomain", "b@in.localhost.localdomain"}, receipt.Recipients, "those of the rule only")
	require.Equal(t, []string{"Support <support@in.localhost.localdomain>", "other@example.com", `"Doe, Jane" <c@example.com>`}, m.Destination)
	require.Equal(t, events.SimpleEmailCommonHeaders{From: []string{"Jürgen <juergen@example.com>"}, To: m.Destination[:2], Cc: m.Destination[2:], ReturnPath: "juergen@example.com",
		MessageID: "<1@example.com>", Date: "Mon, 5 Dec 2016 18:40:08 -0800", Subject: "Grüße"}, m.CommonHeaders)
	require.Equal(t, "FAIL PASS PASS GRAY PASS", strings.Join([]string{receipt.SPFVerdict.Status, receipt.DKIMVerdict.Status, receipt.DMARCVerdict.Status, receipt.SpamVerdict.Status, receipt.VirusVerdict.Status}, " "))
	require.Equal(t, "Return-Path", m.Headers[0].Name)
	require.Equal(t, events.SimpleEmailHeader{Name: "Message-ID", Value: "<1@example.com>"}, m.Headers[len(m.Headers)-1])

	require.Equal(t, []string{"in/" + m.MessageID}, r.stored(t))
	raw, err := r.bucket.Get(t.Context(), "in/"+m.MessageID, 1<<20)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(raw), "Return-Path: <juergen@example.com>\r\nReceived: "))
	require.True(t, strings.HasSuffix(string(raw), mailText), "the mail is as it was sent")
	require.Contains(t, string(raw), "\r\nX-SES-Spam-Verdict: GRAY\r\n")

	status, _ = r.post(t, url.Values{"from": {""}, "to": {"a@in.localhost.localdomain"}}, strings.Repeat("X-Long: "+strings.Repeat("x", 900)+"\r\n", 20)+"\r\nbody")
	require.Equal(t, http.StatusOK, status)
	require.Empty(t, r.payloads[1].Records[0].SES.Mail.Source, "a bounce has no sender")
	require.True(t, r.payloads[1].Records[0].SES.Mail.HeadersTruncated)
}

func TestTheInboxRefusesWhatSESRefuses(t *testing.T) {
	r := newInbox(t)
	to := []string{"a@in.localhost.localdomain"}
	for name, query := range map[string]url.Values{
		"no sender":                     {"to": to},
		"no recipient":                  {"from": {"x@example.com"}},
		"another domain":                {"from": {"x@example.com"}, "to": {"a@example.com", "a@sub.in.localhost.localdomain", "@in.localhost.localdomain", "in.localhost.localdomain"}},
		"a header in the sender":        {"from": {"x@example.com>\r\nX-SES-Spam-Verdict: PASS"}, "to": to},
		"a header in the recipient":     {"from": {"x@example.com"}, "to": {"a\r\nb: c@in.localhost.localdomain"}},
		"a verdict that there is none":  {"from": {"x@example.com"}, "to": to, "dkim": {"maybe"}},
		"a verdict in the wrong letter": {"from": {"x@example.com"}, "to": to, "virus": {"pass"}},
	} {
		status, _ := r.post(t, query, mailText)
		require.Equal(t, http.StatusBadRequest, status, name)
	}
	good := url.Values{"from": {"x@example.com"}, "to": to}
	status, _ := r.post(t, good, "")
	require.Equal(t, http.StatusBadRequest, status)
	status, _ = r.post(t, good, strings.Repeat("x", maxMail+1))
	require.Equal(t, http.StatusRequestEntityTooLarge, status)
	status, _ = r.post(t, good, mailText, "Origin", "https://evil.example", "Content-Type", "text/plain")
	require.Equal(t, http.StatusForbidden, status, "a page of another site")
	status, _ = r.post(t, good, mailText, "Sec-Fetch-Site", "cross-site")
	require.Equal(t, http.StatusForbidden, status, "likewise")
	require.Empty(t, r.stored(t))
	require.Empty(t, r.invoked)

	r.refuse = errors.New("stopping")
	status, _ = r.post(t, good, mailText)
	require.Equal(t, http.StatusInternalServerError, status, "whoever sends tries again")
}
