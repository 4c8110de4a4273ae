// Package workflow tells the workflow engine what its tasks wait for.
package workflow
