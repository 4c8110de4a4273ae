package standin

import (
	"bytes"
	"regexp"
)

// With another authority than it was told, the provider changes it and restarts the server, and waits a minute each time.
var rds = Service{
	Name:       "RDS",
	Operations: "CreateDBInstance, ModifyDBInstance, DescribeDBInstances",
	Why:        "says that a new server's certificate is of an authority that there is no more",
	amends: []amendment{{of: regexp.MustCompile(`^rds (Create|Modify|Describe)DBInstances?$`), answer: func(body []byte) []byte {
		return bytes.ReplaceAll(body, []byte(">rds-ca-default<"), []byte(">rds-ca-rsa2048-g1<"))
	}}},
}
