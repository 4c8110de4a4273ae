package mail_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/ses"
	"github.com/agentplatform/agentplatform/pkg/local/awsapi"
	"github.com/agentplatform/agentplatform/pkg/local/outbox"
	"github.com/agentplatform/agentplatform/pkg/mail"
)

// TestContractSESOfTheOutbox is the SDK over SES's operation as functions in processes of their own find it on one machine.
func TestContractSESOfTheOutbox(t *testing.T) {
	o, err := outbox.Open(outbox.Config{Dir: t.TempDir()})
	require.NoError(t, err)
	server := httptest.NewServer(awsapi.New(awsapi.Config{AccessKey: "platform", Secret: "its secret", Lambda: http.NotFoundHandler(), Cognito: http.NotFoundHandler(),
		Mail: o, MailFrom: message().From.Address}))
	t.Cleanup(server.Close)
	carrier := ses.Carrier{Client: ses.NewClient(aws.Config{Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("platform", "its secret", "")})}
	read := func(t *testing.T) (all []sent) {
		entries, _, err := o.List("", outbox.MaxPage)
		require.NoError(t, err)
		for _, e := range entries {
			raw, err := o.Read(e.ID)
			require.NoError(t, err)
			all = append(all, sent{parse(t, raw).Get("Message-Id"), raw})
		}
		return all
	}
	testContract(t, adapter{Carrier: carrier, own: true, sent: read})

	before, m := len(read(t)), message()
	m.From.Address = "ada@other.example.com"
	_, err = mail.New(carrier).Send(t.Context(), m)
	require.ErrorIs(t, err, mail.ErrRefused)
	_, err = carrier.Carry(t.Context(), mail.Envelope{From: message().From.Address, Raw: []byte("To: x\r\n\r\n")})
	require.ErrorIs(t, err, mail.ErrRefused, "to nobody")
	require.Len(t, read(t), before)
}
