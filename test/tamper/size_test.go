//go:build !long

package tamper_test

const (
	defaultTrials = 1
	defaultClean  = 6
)
