package channel

import (
	"net/netip"
	"net/url"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// checkURL takes where answers may be sent; "" is none: what is said there, credentials among it, must not be readable on the way.
func checkURL(member, s string) error {
	if s == "" {
		return nil
	}
	if err := text.Check("config."+member, s, 1, 2048); err != nil {
		return err
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Opaque != "" || u.Hostname() == "":
		return fault.Invalid("config.%s must be an absolute URL", member)
	case u.User != nil:
		return fault.Invalid("config.%s must not hold a user name or a password", member)
	case u.Fragment != "":
		return fault.Invalid("config.%s must not hold a fragment", member)
	case u.Scheme == "https" || u.Scheme == "http" && thisMachine(u.Hostname()):
		return nil
	}
	return fault.Invalid("config.%s must be https; http is for this machine only", member)
}

func thisMachine(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
