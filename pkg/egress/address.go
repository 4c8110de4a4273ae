package egress

import "net/netip"

// Public reports whether ip is an address of the internet: one that is nobody's own network, machine or test, has no other address embedded in it, and is no
// metadata service's. (IANA special-purpose address registries, RFC 6890.) Of IPv6 that is 2000::/3, of which some is taken out; ip has no zone.
func Public(ip netip.Addr) bool {
	if !ip.IsValid() || ip.Zone() != "" || ip.Is4In6() {
		return false
	}
	if ip.Is6() && !globalUnicast.Contains(ip) {
		return false // also ::, ::1, NAT64 (64:ff9b::/96, 64:ff9b:1::/48), fc00::/7, fe80::/10, ff00::/8
	}
	for _, p := range special {
		if p.Contains(ip) {
			return false
		}
	}
	return true
}

// loopback reports whether ip is this machine's own: not as an IPv4 address in an IPv6 one, which some systems take for it and some do not.
func loopback(ip netip.Addr) bool { return ip.IsLoopback() && !ip.Is4In6() }

var globalUnicast = netip.MustParsePrefix("2000::/3")

var special = func() (all []netip.Prefix) {
	for _, p := range []string{
		"0.0.0.0/8",         // this network; Linux connects to itself
		"10.0.0.0/8",        // private
		"100.64.0.0/10",     // shared by carriers' NAT; a cloud's metadata is in it
		"127.0.0.0/8",       // loopback
		"168.63.129.16/32",  // a cloud's metadata, although it looks public
		"169.254.0.0/16",    // link-local; metadata of most clouds, AWS's DNS and time
		"172.16.0.0/12",     // private
		"192.0.0.0/24",      // IETF protocol assignments; a cloud's metadata is in it
		"192.0.2.0/24",      // documentation
		"192.31.196.0/24",   // AS112
		"192.52.193.0/24",   // AMT
		"192.88.99.0/24",    // 6to4 relays
		"192.168.0.0/16",    // private
		"192.175.48.0/24",   // AS112
		"198.18.0.0/15",     // benchmarks
		"198.51.100.0/24",   // documentation
		"203.0.113.0/24",    // documentation
		"224.0.0.0/4",       // multicast
		"240.0.0.0/4",       // reserved, and broadcast
		"2001::/23",         // IETF protocol assignments, Teredo among them, which has an IPv4 address in it
		"2001:db8::/32",     // documentation
		"2002::/16",         // 6to4: an IPv4 address in it
		"2620:4f:8000::/48", // AS112
		"3fff::/20",         // documentation
	} {
		all = append(all, netip.MustParsePrefix(p))
	}
	return all
}()
