// Package budget answers the operations on budgets and usage.
package budget
