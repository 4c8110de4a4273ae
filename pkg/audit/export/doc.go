// Package export writes events of the chains into files for auditors, as jobs that outlive the process that runs them.
//
// What a file holds: the events that the job's filter fits and that were in their chains when the job began to run, newest first (occurred_at
// descending, then event_id descending), each held to its text and its hash as it is read (package trail). A damaged event fails the job:
// a signed file never repeats what does not hold. Everything comes from the canonical text, which redaction has been over; nothing else of
// the database reaches a file.
//
// Forms. CSV is RFC 4180 to the byte: a header line, CRLF after every line, the last one too, quotes only around cells that hold a comma,
// a quote, CR or LF, quotes inside doubled, UTF-8 without a byte order mark. A cell that starts with = + - @ TAB or CR, which a spreadsheet
// would run as a formula, gets an apostrophe before it. Only actor can: the other cells are UUIDs, times, hashes, words of fixed lists
// and payload_json, which is an object and starts with a brace. So hashes and payloads are always exact in a CSV file; who needs an exact
// actor there takes NDJSON, or removes one apostrophe before one of the six. NDJSON is a JSON object a line with the same members in the
// same order, payload_json being the payload itself, in canonical form.
//
// Bounds: a window of at most 90 days, a filter of at most 4 KB, 10 jobs an hour for each operator, exact under concurrency.
//
// A run dies anywhere, and the file is the same:
//   - As of when: the first run writes the heads of all chains in scope beside the file, by a conditional PUT, and every run takes an event
//     only up to its tenant's head. So all runs see the same events, whatever is chained meanwhile, and the file's bytes are a function
//     of the job and its heads. The manifest repeats them.
//   - A file larger than one part is a multipart upload. After each part the job's row gets what the next run needs: the upload, the parts,
//     the last event in them, and the state of the SHA-256 over their bytes. A part that was written before its row is written again,
//     the same. When the storage has dropped the upload, the file is begun anew.
//   - Who runs holds a lease, renewed in the background, and writes to the row only with it. One who lost it may still write a part or the
//     whole file: the bytes are those of everybody else.
//   - A run that died, or failed for a cause that may pass, is followed by another when its lease ends: three attempts, then the job is
//     Failed with a reason. A run whose time is nearly up hands over; that costs an attempt only if it finished no part.
//
// Beside the file lies a signed manifest (package anchor): hash, size, rows, filter and heads. The verifier checks a file by it.
//
// A link is made when it is asked for, never stored, and good for 15 minutes from the job's end, whenever it is made; after that the
// way is a new job. Exports are copies and are not locked; the storage's lifecycle removes them.
package export
