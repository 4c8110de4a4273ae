package text

import (
	"net/netip"
	"net/url"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// CheckURL takes an address on the network that a caller gives: what is said there, credentials among it, must not be readable on the way.
func CheckURL(field, s string) error {
	if err := Check(field, s, 1, 2048); err != nil {
		return err
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Opaque != "" || u.Hostname() == "":
		return fault.Invalid("%s must be an absolute URL", field)
	case u.User != nil:
		return fault.Invalid("%s must not hold a user name or a password", field)
	case u.Fragment != "":
		return fault.Invalid("%s must not hold a fragment", field)
	case u.Scheme == "https" || u.Scheme == "http" && thisMachine(u.Hostname()):
		return nil
	}
	return fault.Invalid("%s must be https; http is for this machine only", field)
}

func thisMachine(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
