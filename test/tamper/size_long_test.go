//go:build long

package tamper_test

const (
	defaultTrials = 5
	defaultClean  = 50
)
