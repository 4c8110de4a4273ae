package integration

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// mailbox is the configuration of an e-mail integration.
type mailbox struct {
	Address string `json:"address"`
}

// localPart has no +, which begins what replies are told apart by.
var localPart = regexp.MustCompile(`^[a-z0-9]+([._-][a-z0-9]+)*$`)

const maxAddress = 64 // RFC 5321 §4.5.3.1.1

// reserved are local parts that mean something to everybody (RFC 2142), or to the platform.
var reserved = []string{"abuse", "admin", "administrator", "hostmaster", "mailer-daemon", "no-reply", "noreply", "postmaster", "reply", "root", "security", "webmaster"}

// checkAddress takes the local part that mail is sent to. It is one in the whole deployment, so that a mail finds its tenant.
func (i *Integration) checkAddress() error {
	var m mailbox
	if err := members(i.Config, &m); err != nil {
		return err
	}
	m.Address = strings.ToLower(m.Address)
	switch {
	case len(m.Address) > maxAddress || !localPart.MatchString(m.Address):
		return fault.Invalid("config.address must be what stands before the @: 1 to %d letters a-z and digits, and single . _ - between them", maxAddress)
	case slices.Contains(reserved, m.Address):
		return fault.Invalid("config.address must not be %s, which is reserved", m.Address)
	}
	stored, err := json.Marshal(m)
	i.Config, i.Address = string(stored), &m.Address
	return err
}

// members decodes a configuration, and takes no member that it does not know.
func members(config string, into any) error {
	d := json.NewDecoder(strings.NewReader(config))
	d.DisallowUnknownFields()
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(config), &object) != nil || object == nil {
		return fault.Invalid("config must be a JSON object")
	}
	if err := d.Decode(into); err != nil {
		return fault.Invalid("config: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}
