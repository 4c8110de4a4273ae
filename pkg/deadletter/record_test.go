package deadletter_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/deadletter"
)

const here = "arn:aws:lambda:eu-central-1:123456789012:function:"

var sent = time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)

// What Lambda writes is read, and what of it is missing or odd leaves the rest known.
func TestDecodeARecord(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want deadletter.Letter
	}{
		"a process that ended": {
			`{"version":"1.0","timestamp":"2019-11-14T18:16:05.568Z","requestContext":{"requestId":"e4b46cbf-b738-4880-8880-a18cdf61200e","functionArn":"` + here +
				prefix + `reap-turns:$LATEST","condition":"RetriesExhausted","approximateInvokeCount":3},"requestPayload":{"ids":["a"]},"responseContext":{"statusCode":200,` +
				`"executedVersion":"$LATEST","functionError":"Unhandled"},"responsePayload":{"errorMessage":"RequestId: e4b46cbf Process exited before completing request"}}`,
			deadletter.Letter{Function: "reap-turns", Target: here + prefix + "reap-turns:$LATEST", Payload: json.RawMessage(`{"ids":["a"]}`),
				Error:    deadletter.Error{Type: "Unhandled", Message: "RequestId: e4b46cbf Process exited before completing request"},
				Attempts: 3, At: time.Date(2019, 11, 14, 18, 16, 5, 568e6, time.UTC), Source: deadletter.Function},
		},
		"never called": {
			`{"version":"1.0","timestamp":"2026-03-04T05:06:07Z","requestContext":{"functionArn":"` + here + prefix + `drain-outbox","condition":"EventAgeExceeded",` +
				`"approximateInvokeCount":0},"requestPayload":null}`,
			deadletter.Letter{Function: "drain-outbox", Target: here + prefix + "drain-outbox", Payload: json.RawMessage(`null`),
				Error: deadletter.Error{Type: "EventAgeExceeded"}, At: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), Source: deadletter.Function},
		},
		"a payload too large for the queue": {
			`{"requestContext":{"functionArn":"` + here + prefix + `run-export:3"},"responsePayload":"plain words"}`,
			deadletter.Letter{Function: "run-export", Target: here + prefix + "run-export:3", Error: deadletter.Error{Message: "plain words"}, At: sent, Source: deadletter.Function},
		},
		"odd members": {
			`{"timestamp":17,"requestContext":{"functionArn":"` + here + prefix + `run-export","approximateInvokeCount":"three","condition":[]},"requestPayload":1,` +
				`"responseContext":[],"responsePayload":{"errorType":{},"errorMessage":"m"}}`,
			deadletter.Letter{Function: "run-export", Target: here + prefix + "run-export", Payload: json.RawMessage(`1`), Error: deadletter.Error{Message: "m"},
				At: sent, Source: deadletter.Function},
		},
		"another function": {
			`{"requestContext":{"functionArn":"` + here + `billing:$LATEST"},"requestPayload":{}}`,
			deadletter.Letter{Target: here + "billing:$LATEST", Payload: json.RawMessage(`{}`), At: sent, Source: deadletter.Function},
		},
		"no ARN":      {`{"requestContext":{}}`, deadletter.Letter{At: sent, Source: deadletter.Function}},
		"no record":   {`{"requestContext":[]}`, deadletter.Letter{At: sent}},
		"not JSON":    {`{"requestContext":`, deadletter.Letter{At: sent}},
		"nothing":     {``, deadletter.Letter{At: sent}},
		"JSON's null": {`null`, deadletter.Letter{At: sent}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.ID, c.want.Body = "id", c.body
			require.Equal(t, c.want, deadletter.Decode(deadletter.Message{ID: "id", Body: c.body, Sent: sent}, prefix))
		})
	}
}

func TestDecodeALetterOfTheScheduler(t *testing.T) {
	attributes := func(more ...string) map[string]string {
		all := map[string]string{"SCHEDULE_ARN": "arn:aws:scheduler:eu-central-1:123456789012:schedule/agentplatform-test/reap-turns",
			"TARGET_ARN": here + prefix + "reap-turns", "ERROR_CODE": "ThrottlingException", "ERROR_MESSAGE": "Rate exceeded", "RETRY_ATTEMPTS": "10"}
		for i := 0; i < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return all
	}
	want := deadletter.Letter{ID: "id", Function: "reap-turns", Target: here + prefix + "reap-turns", Payload: json.RawMessage(`{}`),
		Error: deadletter.Error{Type: "ThrottlingException", Message: "Rate exceeded"}, Attempts: 11, At: sent, Source: deadletter.Scheduler, Body: `{}`}
	decode := func(body string, attributes map[string]string) deadletter.Letter {
		return deadletter.Decode(deadletter.Message{ID: "id", Body: body, Attributes: attributes, Sent: sent}, prefix)
	}
	require.Equal(t, want, decode(`{}`, attributes()))

	machine := decode(`{}`, attributes("TARGET_ARN", "arn:aws:states:eu-central-1:123456789012:stateMachine:"+prefix+"auto-thread"))
	require.Empty(t, machine.Function, "no function")
	require.Equal(t, "arn:aws:states:eu-central-1:123456789012:stateMachine:"+prefix+"auto-thread", machine.Target)
	require.Nil(t, decode(`{"a`, attributes()).Payload, "not JSON")
	require.Nil(t, decode(`{}`, attributes("IS_PAYLOAD_TRUNCATED", "true")).Payload, "only a part of it")
	require.Zero(t, decode(`{}`, attributes("RETRY_ATTEMPTS", "some")).Attempts)
}

// What is written on one machine is what is read.
func TestExhausted(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 89_999_999, time.FixedZone("", 3600))
	body, err := json.Marshal(deadletter.Exhausted("r", here+prefix+"dispatch-turn", json.RawMessage(`{"a":1}`), json.RawMessage(`{"errorType":"T","errorMessage":"M"}`), 3, at))
	require.NoError(t, err)
	require.JSONEq(t, `{"version":"1.0","timestamp":"2026-03-04T04:06:07.089Z","requestContext":{"requestId":"r","functionArn":"`+here+prefix+`dispatch-turn:$LATEST",`+
		`"condition":"RetriesExhausted","approximateInvokeCount":3},"requestPayload":{"a":1},"responseContext":{"statusCode":200,"executedVersion":"$LATEST",`+
		`"functionError":"Unhandled"},"responsePayload":{"errorType":"T","errorMessage":"M"}}`, string(body))
	require.Equal(t, deadletter.Letter{ID: "id", Function: "dispatch-turn", Target: here + prefix + "dispatch-turn:$LATEST", Payload: json.RawMessage(`{"a":1}`),
		Error: deadletter.Error{Type: "T", Message: "M"}, Attempts: 3, At: at.UTC().Truncate(time.Millisecond), Source: deadletter.Function, Body: string(body)},
		deadletter.Decode(deadletter.Message{ID: "id", Body: string(body)}, prefix))
}

func TestSeconds(t *testing.T) {
	for hold, want := range map[time.Duration]int32{-1: 1, 0: 1, time.Second: 1, time.Second + 1: 2, 5 * time.Minute: 300, deadletter.MaxHold: 43200, 13 * time.Hour: 43200} {
		require.Equal(t, want, deadletter.Seconds(hold), hold)
	}
}

// FuzzDecode: whatever comes is a letter, whose payload can be sent as it is.
func FuzzDecode(f *testing.F) {
	f.Add(record(prefix+"dispatch-turn", `{"turnId":"a"}`), "", "", "", prefix)
	f.Add(record("other", `null`), "", "", "", "")
	f.Add(`{}`, here+prefix+"reap-turns", "3", "false", prefix)
	f.Add(`{"requestContext":{"functionArn":"arn:aws:lambda::::::","approximateInvokeCount":1e999}}`, "", "", "", prefix)
	f.Add(`{"a":1}{`, "arn:aws:lambda:r:a:function:", "-1", "true", "")
	f.Fuzz(func(t *testing.T, body, target, retries, truncated, prefix string) {
		m := deadletter.Message{ID: "id", Body: body, Sent: sent}
		if target != "" {
			m.Attributes = map[string]string{"SCHEDULE_ARN": "s", "TARGET_ARN": target, "RETRY_ATTEMPTS": retries, "IS_PAYLOAD_TRUNCATED": truncated}
		}
		l := deadletter.Decode(m, prefix)
		require.Equal(t, "id", l.ID)
		require.Equal(t, body, l.Body)
		require.GreaterOrEqual(t, l.Attempts, 0)
		require.Contains(t, l.Target, prefix[:len(prefix)*min(len(l.Function), 1)]+l.Function)
		if l.Payload != nil {
			require.True(t, json.Valid(l.Payload))
			_, err := json.Marshal(l.Payload)
			require.NoError(t, err)
		}
		if target != "" {
			require.Equal(t, deadletter.Scheduler, l.Source)
			require.Equal(t, target, l.Target)
		}
	})
}
