// Package connection answers the operations on users' connections to task trackers.
package connection
