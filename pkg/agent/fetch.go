package agent

import (
	"context"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// fetchHost is a host's name, or *. before one for all below it, or * for any.
var fetchHost = regexp.MustCompile(`^(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)*$|^\*$`)

func checkFetchHosts(hosts *[]string) error {
	if hosts == nil {
		return nil
	}
	if len(*hosts) > 100 {
		return fault.Invalid("fetchHosts holds more than 100 entries")
	}
	for _, h := range *hosts {
		if len(h) > 253 || !fetchHost.MatchString(h) {
			return fault.Invalid("fetchHosts holds %q, which is no host's name in lower-case ASCII, nor *. and one for all below it, nor * for any", h)
		}
	}
	return nil
}

// FetchHosts are the hosts that the agent may fetch from now: its own, or else its template's.
func FetchHosts(ctx context.Context, q postgres.Querier, agentID string) ([]string, error) {
	return postgres.One(ctx, q, "agent", pgx.RowTo[[]string], `select coalesce(a.fetch_hosts, t.fetch_hosts) from agents a
		join agent_templates t on t.tenant_id = a.tenant_id and t.id = a.template_id where a.id = $1`, agentID)
}

// MayFetch reports whether one of the hosts is, or covers, this one. *.example.com covers www.example.com and not example.com.
func MayFetch(hosts []string, host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	for _, h := range hosts {
		below, many := strings.CutPrefix(h, "*.")
		if h == "*" || h == host || many && len(host) > len(below)+1 && strings.HasSuffix(host, "."+below) {
			return true
		}
	}
	return false
}
