// Package sqs is Amazon SQS behind package deadletter: Queue is the queue into which Lambda and EventBridge Scheduler put their dead letters.
//
// A standard queue may, rarely, give a message to two receivers; and it answers the deletion of a message that somebody else has received since as if it
// had succeeded, without deleting it. So a Queue asks nothing for a letter whose time is over.
package sqs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/agentplatform/agentplatform/pkg/deadletter"
)

// Queue is a deadletter.Queue of a standard queue of Amazon SQS.
type Queue struct {
	Client *sqs.Client // who calls; its role needs sqs:ReceiveMessage, sqs:DeleteMessage and sqs:ChangeMessageVisibility on the queue. Required
	URL    string      // of the queue. Required
	Prefix string      // what comes before a manifest name in a function's name: "agentplatform-prod-". Required
}

const (
	most = 10 // messages of one answer: SQS's limit

	// wait, in seconds, has SQS ask all its servers: at once they are only some of them, and an empty answer says nothing.
	wait = 1
)

// Receive implements deadletter.Queue.
func (q Queue) Receive(ctx context.Context, limit int, hold time.Duration) (received []deadletter.Letter, err error) {
	seconds := deadletter.Seconds(hold)
	for round := false; len(received) < limit && !round; {
		asked := time.Now()
		out, err := q.Client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &q.URL, MaxNumberOfMessages: int32(min(most, limit-len(received))),
			VisibilityTimeout: seconds, WaitTimeSeconds: wait, MessageAttributeNames: []string{"All"},
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameSentTimestamp}})
		if err != nil {
			return received, q.failed("receive letters", "sqs:ReceiveMessage", err)
		}
		round = len(out.Messages) == 0
		for _, m := range out.Messages {
			l := q.letter(m)
			l.Until = asked.Add(time.Duration(seconds) * time.Second)
			if at := slices.IndexFunc(received, func(r deadletter.Letter) bool { return r.ID == l.ID }); at >= 0 {
				received[at], round = l, true // its time was over before all were received
				continue
			}
			received = append(received, l)
		}
	}
	return received, nil
}

func (q Queue) letter(m types.Message) deadletter.Letter {
	attributes := map[string]string{}
	for name, value := range m.MessageAttributes {
		attributes[name] = aws.ToString(value.StringValue)
	}
	var sent time.Time
	if ms, err := strconv.ParseInt(m.Attributes[string(types.MessageSystemAttributeNameSentTimestamp)], 10, 64); err == nil {
		sent = time.UnixMilli(ms).UTC()
	}
	l := deadletter.Decode(deadletter.Message{ID: aws.ToString(m.MessageId), Body: aws.ToString(m.Body), Attributes: attributes, Sent: sent}, q.Prefix)
	l.Receipt = aws.ToString(m.ReceiptHandle)
	return l
}

// Delete implements deadletter.Queue.
func (q Queue) Delete(ctx context.Context, l deadletter.Letter) error {
	if l.Expired() {
		return fmt.Errorf("letter %s: %w", l.ID, deadletter.ErrExpired)
	}
	_, err := q.Client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &q.URL, ReceiptHandle: &l.Receipt})
	switch {
	case err != nil && expired(err):
		return fmt.Errorf("letter %s: %w (%w)", l.ID, deadletter.ErrExpired, err)
	case err != nil:
		return q.failed("delete letter "+l.ID, "sqs:DeleteMessage", err)
	}
	return nil
}

// Release implements deadletter.Queue.
func (q Queue) Release(ctx context.Context, l deadletter.Letter) error {
	if err := ctx.Err(); err != nil || l.Expired() {
		return err
	}
	_, err := q.Client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: &q.URL, ReceiptHandle: &l.Receipt, VisibilityTimeout: 0})
	if err != nil && !expired(err) {
		return q.failed("release letter "+l.ID, "sqs:ChangeMessageVisibility", err)
	}
	return nil
}

// expired reports whether SQS says that a receipt handle is of no use any more. It says so in several ways; that a handle has expired, and that its
// message is gone, are no modelled errors.
func expired(err error) bool {
	if errors.As(err, new(*types.ReceiptHandleIsInvalid)) || errors.As(err, new(*types.MessageNotInflight)) || errors.As(err, new(*types.InvalidIdFormat)) {
		return true
	}
	var api smithy.APIError
	return errors.As(err, &api) && strings.HasPrefix(api.ErrorCode(), "InvalidParameterValue") && strings.Contains(api.ErrorMessage(), "ReceiptHandle")
}

// failed is what an operator can act on.
func (q Queue) failed(what, permission string, err error) error {
	var api smithy.APIError
	switch {
	case errors.As(err, new(*types.QueueDoesNotExist)):
		return fmt.Errorf("%s: there is no queue %s: is it this stage's, in this account and region? %w", what, q.URL, err)
	case errors.As(err, &api) && strings.HasPrefix(api.ErrorCode(), "AccessDenied"):
		return fmt.Errorf("%s: access denied: the role needs %s on the queue %s: %w", what, permission, q.URL, err)
	}
	return fmt.Errorf("%s of queue %s: %w", what, q.URL, err)
}
