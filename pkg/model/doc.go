// Package model is the port to the managed language model: one call, Converse, that streams its text, and a price for what it used.
//
// The adapter is pkg/cloud/bedrock, in the cloud and on one machine; Retry wraps any Model.
//
// Invariants:
//   - A Response exists only for an answer that is complete: stop reason and usage both arrived, tool inputs are JSON objects.
//     A stream that ends early is an error, never a shorter answer.
//   - The deltas given to a Stream since the last Restart, concatenated, are Response.Text(). So nothing is written twice.
//   - Every error is an *Error: a Reason to branch on, a Message that a tenant may read, and the cause for the log alone.
//   - A Response survives encoding/json unchanged: it is stored as a step row and replayed from there.
package model
