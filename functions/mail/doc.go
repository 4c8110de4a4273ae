// Package mail is the one function that sends e-mails. Only it holds the right to: functions that an agent's words go through ask it.
package mail
