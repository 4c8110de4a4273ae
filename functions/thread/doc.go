// Package thread answers the operations on threads and their messages.
package thread
