// Package integration answers the operations on integrations, the deliveries that come to them, and what goes back.
package integration
