package mail_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sesv2"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/ses"
	"github.com/agentplatform/agentplatform/pkg/mail"
	"github.com/agentplatform/agentplatform/test/moto"
)

// TestContractSES runs over moto, which shows what was sent among the data of its own pages.
func TestContractSES(t *testing.T) {
	endpoint := moto.Start(t)
	client := sesv2.New(sesv2.Options{Region: "eu-central-1", BaseEndpoint: &endpoint, Credentials: credentials.NewStaticCredentialsProvider("any", "any", "")})
	identity := "agents.example.com"
	_, err := client.CreateEmailIdentity(t.Context(), &sesv2.CreateEmailIdentityInput{EmailIdentity: &identity})
	require.NoError(t, err)
	carrier := ses.Carrier{Client: client}
	read := func(t *testing.T) (all []sent) {
		for _, m := range kept(t, endpoint) {
			require.Equal(t, "ada+t1@agents.example.com", m.Source)
			all = append(all, sent{"<" + m.ID + "@eu-central-1.amazonses.com>", []byte(m.Raw)})
		}
		return all
	}
	testContract(t, adapter{Carrier: carrier, sent: read})

	t.Run("a sender that is not verified", func(t *testing.T) {
		before := len(read(t))
		m := message()
		m.From.Address = "ada@other.example.com"
		_, err := mail.New(carrier).Send(t.Context(), m)
		require.ErrorIs(t, err, mail.ErrRefused)
		require.ErrorContains(t, err, "a mail from ada@other.example.com: the mail service refuses it: ")
		require.Len(t, read(t), before)
	})
	t.Run("the envelope says who gets it", func(t *testing.T) {
		m := message()
		m.To = []string{"ann@acme.test", "bob@acme.test"}
		id, err := mail.New(carrier).Send(t.Context(), m)
		require.NoError(t, err)
		for _, s := range kept(t, endpoint) {
			if id == "<"+s.ID+"@eu-central-1.amazonses.com>" {
				require.Equal(t, m.To, s.Destinations[:2], "moto puts those of the headers behind them; SES does not")
				return
			}
		}
		require.Fail(t, "not sent")
	})
}

type rawMessage struct {
	ID           string   `json:"id"`
	Source       string   `json:"source"`
	Destinations []string `json:"destinations"`
	Raw          string   `json:"raw_data"`
}

func kept(t *testing.T, endpoint string) []rawMessage {
	t.Helper()
	res, err := http.Get(endpoint + "/moto-api/data.json")
	require.NoError(t, err)
	defer res.Body.Close()
	var data struct {
		SES struct {
			RawMessage []rawMessage
		} `json:"ses"`
	}
	require.NoError(t, json.NewDecoder(res.Body).Decode(&data))
	return data.SES.RawMessage
}
