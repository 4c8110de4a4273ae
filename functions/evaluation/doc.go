// Package evaluation answers the operations on evaluations and their runs, works on runs, and rates the turns of every day.
package evaluation
