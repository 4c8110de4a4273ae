// Package ledger is the writer's side of the compliance ledger: it moves events from the outbox into the chains, tells the write-once bucket how far they have
// come, anchors them, and watches that all of this goes on.
//
// What holds:
//
//   - One writer. A batch is one transaction under an advisory lock: rows leave the outbox, enter the chain and move the heads together or not at all. Who does
//     not get the lock returns at once; who had it looks again after letting it go, so that no wake is lost.
//   - A tenant's events are chained in the order in which their transactions committed (audit_outbox.position), each once.
//   - A row is never skipped silently. One whose MAC is wrong, that is no envelope, whose columns say something else than its text, whose event is in a chain
//     already, or that cannot be stored is put into quarantine with a reason, counted, and told of by an Error line; the others go on.
//   - recorded_at never goes back: not within a chain, not behind the cadence before, whatever the clock does.
//   - The bucket is written before the database learns of it. Whatever is in the bucket and not in the database is what a crash between the two left: the next
//     run reads it, holds it to the database, and takes it over. So each number of a beacon and of an anchor is used once.
//   - A database that is older than the bucket (a backup that was restored) is found at the start of every call, and nothing is written: ErrRollback.
//   - Nothing is signed that was not read again: an anchor's new rows are read from the database and their hashes computed anew. A row that does not hash to its
//     hash, or is not linked to the one before it, stops anchoring: ErrDamaged.
//   - Events carry the number of the cadence that was open when they were chained. Appending and closing exclude each other by a second lock, so what an anchor
//     covers does not change once its cadence is closed, and an anchor that a crash interrupted comes out the same.
//
// Memory is bounded by a batch, by the number of tenants (an anchor names them all) and by a few logs of 1 MiB; larger ones go through temporary files.
//
// Alarms are Error lines, figures Info lines "metric" (pkg/metric).
package ledger
