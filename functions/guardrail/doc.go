// Package guardrail answers the operations on guardrails.
package guardrail
