// Package turn answers the operations on turns and runs them.
package turn
