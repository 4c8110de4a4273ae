//go:build unix

package embedded

import (
	"maps"
	"slices"
	"strconv"
)

// settings are the server's, as arguments: they win over postgresql.conf, which stays as initdb made it.
func settings(config Config, port int, socket string) []string {
	set := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"port":                    strconv.Itoa(port),
		"unix_socket_directories": `"` + socket + `"`, // a list: the quotes keep a comma in a name together
		"max_connections":         "100",
		"shared_buffers":          "96MB",
		"jit":                     "off",     // compiling costs more than these short queries
		"wal_level":               "minimal", // nobody replicates from here
		"max_wal_senders":         "0",
		"min_wal_size":            "80MB",
		"max_wal_size":            "1GB",
		"autovacuum_naptime":      "5s",    // a fresh database must not keep plans that were made for empty tables
		"checkpoint_timeout":      "15min", // fewer checkpoints, fewer whole pages in the log after each
		"timezone":                "UTC",
		"log_timezone":            "UTC",
		"log_line_prefix":         "%m [%p] ",
		"log_min_messages":        "warning",
		"log_min_error_statement": "panic", // statements hold what people wrote
		"log_checkpoints":         "off",
	}
	if !config.Durable {
		set["fsync"] = "off"
		set["full_page_writes"] = "off"
	}
	maps.Copy(set, config.Settings)
	var args []string
	for _, name := range slices.Sorted(maps.Keys(set)) {
		args = append(args, "-c", name+"="+set[name])
	}
	return args
}
