// Package identity holds the identity pool's triggers, and what callers do with their own sessions.
package identity
