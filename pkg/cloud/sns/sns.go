// Package sns is the mobile push of Amazon SNS behind package push; Push puts it behind the needs push:send and push:devices.
package sns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/push"
)

// Carrier is the push.Carrier of Amazon SNS. An endpoint is an ARN below one of its applications; every other one is gone, so that no caller's string
// reaches a topic, a phone or another application.
type Carrier struct {
	Client *sns.Client // whose role needs, to send, sns:Publish on the applications' endpoints; for devices, sns:SetEndpointAttributes and sns:DeleteEndpoint on them, and sns:CreatePlatformEndpoint on the applications. Required
	// Applications are the ARNs of the platform applications, which hold the credentials of Apple and Google. A platform without one is not served.
	Applications map[push.Platform]string
}

// keys are the names of the platforms in a message for several.
var keys = map[push.Platform]string{push.APNS: "APNS", push.APNSSandbox: "APNS_SANDBOX", push.FCM: "GCM"}

// other is how SNS tells the endpoint of a token that is registered with other attributes.
var other = regexp.MustCompile(`Endpoint (arn:\S+) already exists with the same Token`)

// Register asks for the token's endpoint, and then has it enabled, with the user data: SNS gives back a disabled one as it is.
func (c Carrier) Register(ctx context.Context, platform push.Platform, token, userData string) (endpoint string, err error) {
	application := c.Applications[platform]
	if application == "" {
		return "", fmt.Errorf("%w: %w", push.ErrInvalid, fault.Invalid("this deployment sends no notifications to %s", platform))
	}
	in := &sns.CreatePlatformEndpointInput{PlatformApplicationArn: &application, Token: &token}
	if userData != "" {
		in.CustomUserData = &userData
	}
	made, err := c.Client.CreatePlatformEndpoint(ctx, in)
	var refused *types.InvalidParameterException
	switch {
	case err == nil:
		endpoint = aws.ToString(made.EndpointArn)
	case errors.As(err, &refused) && other.MatchString(refused.ErrorMessage()):
		endpoint = other.FindStringSubmatch(refused.ErrorMessage())[1]
	case errors.As(err, &refused) && strings.Contains(refused.ErrorMessage(), "parameter: Token "):
		return "", fmt.Errorf("%w: %w", push.ErrInvalid, fault.Invalid("%s does not take this token", platform))
	default:
		return "", fmt.Errorf("platform application %s: %w", application, err)
	}
	_, err = c.Client.SetEndpointAttributes(ctx, &sns.SetEndpointAttributesInput{EndpointArn: &endpoint,
		Attributes: map[string]string{"Enabled": "true", "Token": token, "CustomUserData": userData}})
	if err != nil {
		return "", fmt.Errorf("endpoint %s: %w", endpoint, err)
	}
	return endpoint, nil
}

// Unregister deletes the endpoint.
func (c Carrier) Unregister(ctx context.Context, endpoint string) error {
	if _, ours := c.platform(endpoint); !ours {
		return nil
	}
	if _, err := c.Client.DeleteEndpoint(ctx, &sns.DeleteEndpointInput{EndpointArn: &endpoint}); err != nil {
		return fmt.Errorf("endpoint %s: %w", endpoint, err)
	}
	return nil
}

// Send publishes to the endpoint.
func (c Carrier) Send(ctx context.Context, endpoint string, n push.Notification) error {
	platform, ours := c.platform(endpoint)
	if !ours {
		return fmt.Errorf("endpoint %.200q: %w: it is of none of the platform applications", endpoint, push.ErrGone)
	}
	message, err := json.Marshal(map[string]string{"default": n.Title, keys[platform]: string(push.Payload(platform, n))})
	if err != nil {
		return err
	}
	in := &sns.PublishInput{TargetArn: &endpoint, MessageStructure: aws.String("json"), Message: aws.String(string(message))}
	if platform != push.FCM { // headers of APNs; SNS has the names of the sandbox's in those of the service
		in.MessageAttributes = map[string]types.MessageAttributeValue{"AWS.SNS.MOBILE.APNS.PUSH_TYPE": text("alert")}
		if n.DedupeID != "" {
			in.MessageAttributes["AWS.SNS.MOBILE.APNS.COLLAPSE_ID"] = text(n.DedupeID)
		}
	}
	if _, err := c.Client.Publish(ctx, in); err != nil {
		return fmt.Errorf("endpoint %s: %w", endpoint, reason(err))
	}
	return nil
}

func text(value string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &value}
}

// platform is that of an endpoint of ours: arn:…:endpoint/GCM/name/id is of the application arn:…:app/GCM/name.
func (c Carrier) platform(endpoint string) (push.Platform, bool) {
	for platform, application := range c.Applications {
		if id, ok := strings.CutPrefix(endpoint, strings.Replace(application, ":app/", ":endpoint/", 1)+"/"); ok && application != "" && id != "" {
			return platform, true
		}
	}
	return "", false
}

// reason finds the endpoints that are gone: disabled by SNS when the platform refused the token, or deleted. Of a deleted one SNS says that the parameter
// is invalid.
func reason(err error) error {
	var disabled *types.EndpointDisabledException
	var missing *types.NotFoundException
	var parameter *types.InvalidParameterException
	if errors.As(err, &disabled) || errors.As(err, &missing) || errors.As(err, &parameter) && strings.Contains(parameter.ErrorMessage(), "No endpoint found") {
		return fmt.Errorf("%w: %w", push.ErrGone, err)
	}
	return err
}
