// Package webhook answers the operations on webhooks, and the calls that start their targets.
package webhook
