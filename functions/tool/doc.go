// Package tool answers the operations on tool servers.
package tool
