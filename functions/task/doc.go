// Package task takes in what task trackers tell, and puts it into threads.
package task
