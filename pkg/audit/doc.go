// Package audit holds the words of the compliance ledger: which acts are recorded, what of them, and in which bytes.
//
// What holds, from the act to the anchor:
//
//   - Recorded or not done. An act and its event are one transaction (package outbox): either both are there or neither.
//   - Only what a rule lists. Each recorded type lists the payload fields it keeps; every other field is dropped before anything is written, and
//     its name is kept in redacted_fields. What is kept is scrubbed: secrets are replaced, control characters dropped, long strings cut.
//     A type without a rule cannot be recorded.
//   - One text. An event is one line of JSON in canonical form (package canonical: RFC 8785, restricted and strict). That text is what is
//     stored, hashed and proven; columns beside it are for finding it, and the verifier holds each to the text.
//   - The pending form is the text without recorded_at, which only the ledger's one writer sets. The emission MAC is HMAC-SHA256 of the
//     pending form, by a key that the database never sees: whoever changes a pending row without the key is found out when it is drained. In
//     lower-case hex the MAC is the receipt that a caller of the REST API keeps.
//   - The chain, one per tenant: event_hash = SHA-256(canonical text ‖ prev_hash), with prev_hash the 64 lower-case hex characters of the
//     event before it, or the seven bytes GENESIS for the first. The position in the chain is not part of the text.
//   - The leaf of a tenant is SHA-256(0x00 ‖ 16 tenant id bytes ‖ 32 bytes of its newest event_hash), the root the RFC 6962 Merkle root over
//     the leaves in ascending order of tenant ids (packages merkle and anchor).
//
// Who is authoritative: for a pending event the outbox row, checked by its MAC; for a drained one the chain row's text, checked by the chain; for
// everything an anchor covers the object in the write-once bucket, checked by its signature and by the anchors before and after it. Where
// two disagree, the later in this list is right and the earlier was changed.
//
// What a crash between two steps leaves:
//
//   - before the commit of the act: nothing, neither act nor event;
//   - after the commit, before the drainer was woken: a pending row; the next wake or the sweep, once a minute, drains it;
//   - while a batch is drained: that batch's transaction is gone, its rows are pending as before; none is lost, none is chained twice, for
//     rows leave the pending state in the transaction that appends them;
//   - after a cadence was closed, before its anchor was written: rows that name the cadence; the next run makes the same header from them;
//   - after the anchor was written, before the database learned of it: an object in the bucket; the next run reads it back, holds it to what
//     it would have written itself, and takes it over.
package audit
