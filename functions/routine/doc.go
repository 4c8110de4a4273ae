// Package routine answers the operations on routines and their runs.
package routine
