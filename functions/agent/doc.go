// Package agent answers the operations on agents.
package agent
