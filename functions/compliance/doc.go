// Package compliance answers the compliance console, which is for platform operators only, runs its exports, and takes the events of agent
// runtimes.
package compliance
