// Package user answers the operations on the users of a tenant.
package user
