// Package tenant answers the operations on tenants.
package tenant
