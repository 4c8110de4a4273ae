// Package host runs functions as AWS Lambda does: each invoke goes to a process of the function's real binary, over Lambda's Runtime API
// (https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html). It knows nothing of the rest of the platform: a folder of binaries, their names
// and an environment for each are enough.
//
// Invariants, which are Lambda's:
//   - An instance is one process, and does one invoke at a time. It is started when an invoke finds none that is free, it stays for the next,
//     and it begins an invoke only when it asks for one: what it does before its first `next` is its start, outside of the invoke's timeout.
//   - An invoke that takes longer than its function's timeout kills the instance: Sandbox.Timedout. A process that ends before it has answered:
//     Runtime.ExitError. What the function reports itself comes as it reported it. All three are a FunctionError; the next invoke gets a new instance.
//   - A payload is at most 6 MiB each way; one for later (an event) at most 1 MiB.
//   - A caller that goes away does not stop an invoke that has begun.
//   - No process outlives Stop, nor (on Linux) the process that hosts it, however that ends.
//
// Where Lambda would refuse an invoke because too many run (429), this host has it wait: a machine has fewer instances than a region. An invoke
// whose caller goes away while it waits is dropped. At the bound on all instances, the one that was idle for longest makes room.
//
// The Runtime API is served on the loopback address. Its path begins with a token of the instance, so that nobody else on the machine can take an
// instance's invokes.
package host
