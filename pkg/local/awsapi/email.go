package awsapi

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"regexp"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/mail"
)

// emails is SES's SendEmail, API version 2, of raw messages from the one sender. As SES does, it sets a Message-ID of its own.
type emails struct {
	carrier mail.Carrier
	from    string
}

// maxEmail is what the platform sends at most, and room for JSON and base64 around it.
const maxEmail = 2 * mail.MaxSize

var messageID = regexp.MustCompile(`(?im)^Message-ID:.*\r\n`)

func (s emails) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		FromEmailAddress string
		Destination      struct{ ToAddresses []string }
		Content          struct{ Raw struct{ Data []byte } }
	}
	if json.NewDecoder(http.MaxBytesReader(w, r.Body, maxEmail)).Decode(&in) != nil {
		refuse(w, http.StatusBadRequest, "BadRequestException", "the request is not the JSON object that the operation takes, or is too large")
		return
	}
	if in.FromEmailAddress != s.from {
		refuse(w, http.StatusBadRequest, "MessageRejected", "Email address is not verified: "+in.FromEmailAddress)
		return
	}
	header, body, ok := bytes.Cut(in.Content.Raw.Data, []byte("\r\n\r\n"))
	if to := len(in.Destination.ToAddresses); !ok || to == 0 || to > mail.MaxRecipients {
		refuse(w, http.StatusBadRequest, "BadRequestException", "the platform sends raw messages only, to 1 to 50 addresses")
		return
	}
	id := ident.New()
	e := mail.Envelope{ID: "<" + id + "@email.amazonses.com>", From: in.FromEmailAddress, To: in.Destination.ToAddresses}
	e.Raw = append([]byte("Message-ID: "+e.ID+"\r\n"), messageID.ReplaceAll(append(header, '\r', '\n'), nil)...)
	e.Raw = append(append(e.Raw, '\r', '\n'), body...)
	if _, err := s.carrier.Carry(r.Context(), e); err != nil {
		if r.Context().Err() == nil {
			slog.Error("a function's mail was not sent", "error", err)
			refuse(w, http.StatusInternalServerError, "InternalServiceErrorException", "the mail cannot be kept")
		}
		return
	}
	write(w, http.StatusOK, map[string]string{"MessageId": id})
}
