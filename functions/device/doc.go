// Package device is the operations of people's devices, which are told of tasks by push. A user sees and changes no devices but its own.
package device
