// Package anchor is the byte formats of the ledger's evidence, and the arithmetic that checks them: anchor objects,
// head beacons, checkpoints, proof files, export manifests. Pure functions: no clock, no network, no storage.
//
// What holds:
//   - A text has one form. What Parse, Open and Check accept is, byte for byte, what Seal and Build write for the same
//     content: canonical JSON (pkg/audit/canonical) with exactly the members named here, in their order.
//   - Everything that can be computed from the rest is computed again when it is read (roots, counts, hashes), so a
//     parsed value never contradicts itself. Whether it tells the truth is told by its signature, by the object before
//     it and by the witnesses; that is the verifier's work (pkg/audit/verify) and, for one event, Check.
//   - A signing key signs three kinds of text, which cannot be taken for one another: checkpoints, whose first line is
//     the origin (a name that never begins with a brace), and the canonical objects of beacons ({"cadence_id":…) and of
//     manifests ({"bytes":…).
//
// # Numbers, times, hashes
//
// Anchors are numbered from 1 without gaps: the n-th is cadence n, its id is cadence-%012d. Times have six digits and Z.
// Hashes are SHA-256: 64 lower-case hexadecimal characters in objects, base64 (RFC 4648 §4) in notes and proofs. Trees
// are those of RFC 6962 §2.1 (pkg/audit/merkle); leaves are made so:
//
//	merkle_root  SHA-256(0x00 ‖ 16 bytes tenant id ‖ 32 bytes hash of the tenant's last event)
//	proof_root   SHA-256(0x00 ‖ tenant id ‖ length as 8 bytes, big-endian ‖ hash of its last event ‖ tree_root)
//	tree_root    SHA-256(0x00 ‖ 32 bytes event hash), a tree for each tenant, over all events of its chain
//	log          SHA-256(0x00 ‖ SHA-256(header)), over all anchors
//
// The first two are over all tenants that have a chain, ascending by the bytes of their id.
//
// # Signatures
//
// A checkpoint is a note as c2sp.org/signed-note and c2sp.org/tlog-checkpoint describe. Its log signature has type 0x02,
// ECDSA with SHA-256 on P-256 as ASN.1 DER, and as signed-note says of that type, the key id is the first four bytes of
// SHA-256 of the DER of the public key's SubjectPublicKeyInfo, without name and type. The key's name is the origin.
// Witnesses add lines of type 0x04, cosignature/v1 (c2sp.org/tlog-cosignature): Ed25519 with a time, key id
// SHA-256(name ‖ 0x0A ‖ 0x04 ‖ 32 bytes key)[:4]. Beacons and manifests carry the bare ECDSA signature of their SHA-256.
package anchor
