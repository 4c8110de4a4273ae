// Package compliance answers the compliance console: platform operators only.
package compliance
