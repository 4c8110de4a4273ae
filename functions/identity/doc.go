// Package identity holds the identity pool's triggers.
package identity
