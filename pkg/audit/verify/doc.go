// Package verify checks the audit log against the write-once bucket, trusting neither the database nor whoever writes the log.
//
// What it stands on, in this order:
//   - The bucket's listing of versions: of every anchor, beacon and event log there is exactly one version, no delete marker, under a COMPLIANCE
//     lock that reaches the floor. What such an object says cannot have been said later than the storage's own clock has it.
//   - The anchors: numbered without gaps, chained by hash, each with the roots that its own list makes, each with the signature of the log's key over the tree of
//     all anchors so far, and with a witness's, if its key is given. No tenant ever shrinks or goes.
//   - The chains: every row is read, its text must be the canonical form of a strict envelope, its columns must say what the text says, its hash is computed
//     again, the side tree is built again; and where an anchor, a beacon or an event log speaks of the chain, the chain must be what they say.
//
// What holds for a run:
//   - All of the database is read in one snapshot, taken after the anchors were listed, so a writer at work makes no false finding.
//   - Memory is bounded by the tenants and the anchors (some hundred bytes each), never by the events: heads are compared through a running hash for each tenant,
//     and only where that differs are the anchors read once more to say where. Findings are kept up to a limit and counted beyond it. What a number in a key or in
//     the database sizes is bounded by what was listed.
//   - Of objects that are read whole, 16 MiB are held at a time, or a single one that is larger; what is larger than the platform itself can write (an anchor of 1 GiB,
//     a beacon of 64 MiB) is a finding and not read, and memory is taken for bytes that come, not for sizes that are listed. Event logs of any size are streamed. An
//     anchor takes some 230 bytes for each of its tenants, 650 more while it is parsed, and 450 are kept: 200 MB suffice for some ten thousand tenants, and an anchor
//     of many more that somebody forged with care takes as much as a real one of that size would.
//   - Nothing is written, to the bucket or the database, and nothing waits for ever: a bucket or database that is silent for Config.Patience ends the run with an
//     error. An error means "could not finish"; what was found stands in the Report.
//   - Whatever could not be checked is named in Report.NotChecked.
package verify
