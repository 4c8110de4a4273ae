// Package space answers the operations on spaces and the files that govern them.
package space
