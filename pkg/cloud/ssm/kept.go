package ssm

import "strings"

// kept is value as a parameter can hold it. Parameter Store refuses what looks like a reference to another parameter, {{…}}, so a \ comes between two {;
// and behind a { before a \, so that given finds what was there. Other values are kept as they are.
func kept(value string) string {
	if !strings.Contains(value, "{{") && !strings.Contains(value, `{\`) {
		return value
	}
	var b strings.Builder
	for i := range len(value) {
		b.WriteByte(value[i])
		if value[i] == '{' && i+1 < len(value) && (value[i+1] == '{' || value[i+1] == '\\') {
			b.WriteByte('\\')
		}
	}
	return b.String()
}

// given is the value that was kept.
func given(kept string) string { return strings.ReplaceAll(kept, `{\`, "{") }
