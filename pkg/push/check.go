package push

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

var (
	appleToken = regexp.MustCompile(`^[0-9a-f]{1,400}$`) // its length is Apple's to change; SNS takes no longer one
	word       = regexp.MustCompile(`^[!-~]+$`)
	dataName   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	reserved   = regexp.MustCompile(`^(?:aps|from|message_type|notification|google.*|gcm.*)$`) // Apple's and Google's own
)

const maxToken = 4096

// checkDevice gives the token in the one spelling that it is known by.
func checkDevice(platform Platform, token, userData string) (string, error) {
	switch platform {
	case APNS, APNSSandbox:
		if token = strings.ToLower(token); !appleToken.MatchString(token) {
			return "", invalid("a token of %s is at most 400 hexadecimal digits", platform)
		}
	case FCM:
		if len(token) > maxToken || !word.MatchString(token) {
			return "", invalid("a token of %s is at most %d printable ASCII characters without spaces", platform, maxToken)
		}
	default:
		return "", invalid("%.40q is not a platform: %s, %s or %s", string(platform), APNS, APNSSandbox, FCM)
	}
	if len(userData) > MaxUserData || !utf8.ValidString(userData) {
		return "", invalid("user data is at most %d bytes of UTF-8", MaxUserData)
	}
	return token, nil
}

func (n Notification) check() error {
	switch {
	case strings.TrimSpace(n.Title) == "":
		return invalid("a notification has a title")
	case !utf8.ValidString(n.Title) || !utf8.ValidString(n.Body):
		return invalid("a notification's title and body are UTF-8")
	case n.DedupeID != "" && (len(n.DedupeID) > MaxDedupeID || !word.MatchString(n.DedupeID)):
		return invalid("a notification's id is at most %d printable ASCII characters without spaces", MaxDedupeID)
	}
	for name, value := range n.Data {
		switch {
		case !dataName.MatchString(name) || reserved.MatchString(strings.ToLower(name)):
			return invalid("%.70q cannot be the name of a notification's data", name)
		case !utf8.ValidString(value):
			return invalid("a notification's data is UTF-8: %s", name)
		}
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalid, fault.Invalid(format, args...))
}
