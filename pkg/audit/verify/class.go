package verify

// Class is the stable name of what a finding is. docs/verify.md says of each what it means and what may be behind it.
type Class string

// Classes of findings, in the order in which a report lists them.
const (
	// What the client itself remembers.
	HistoryRewritten Class = "history-rewritten" // the bucket contradicts what an earlier run saw

	// Objects of the bucket: anchors, beacons and event logs.
	ObjectReplaced   Class = "object-replaced"   // more than one version
	ObjectHidden     Class = "object-hidden"     // a delete marker
	ObjectUnexpected Class = "object-unexpected" // a key that nobody writes
	ObjectChanged    Class = "object-changed"    // what was read is not what was listed, or more is listed than the platform writes
	LockMode         Class = "lock-mode"         // no lock, or one that can be lifted
	Retention        Class = "retention"         // the lock ends too early
	Clock            Class = "clock"             // the writer's time and the storage's time differ

	// Anchors.
	NothingToVerify Class = "nothing-to-verify"
	AnchorMissing   Class = "anchor-missing"   // a number is left out
	AnchorLate      Class = "anchor-late"      // the newest is too old
	AnchorInvalid   Class = "anchor-invalid"   // not an anchor, or its roots are not of its list
	AnchorChain     Class = "anchor-chain"     // does not name the anchor before it
	AnchorWindow    Class = "anchor-window"    // an uncovered gap, an overlap, a time that goes back
	AnchorSignature Class = "anchor-signature" // not signed by a given key
	AnchorLog       Class = "anchor-log"       // the checkpoint is not of the anchors before it
	AnchorShrunk    Class = "anchor-shrunk"    // a tenant's chain became shorter or went, from one anchor to the next
	AnchorDatabase  Class = "anchor-database"  // the database remembers other anchors
	Unwitnessed     Class = "unwitnessed"      // no cosignature of a given witness

	// Chains.
	TenantMissing    Class = "tenant-missing"     // anchored, and no rows
	ChainTruncated   Class = "chain-truncated"    // rows end before an anchor's length
	EventChanged     Class = "event-changed"      // the row is not the event of the write-once log: names the first
	HashMismatch     Class = "hash-mismatch"      // the text does not have the hash
	LinkBroken       Class = "link-broken"        // prev_hash is not the hash of the event before
	PositionGap      Class = "position-gap"       // positions are not 1, 2, 3 …
	Fork             Class = "fork"               // a position or a predecessor is taken twice
	TextNotCanonical Class = "text-not-canonical" // the stored text is not its own canonical form
	EnvelopeInvalid  Class = "envelope-invalid"   // canonical, but not an envelope
	ColumnMismatch   Class = "column-mismatch"    // a column says other than the text
	ForeignTenant    Class = "foreign-tenant"     // the text is another tenant's
	DuplicateEvent   Class = "duplicate-event"    // an event id is in the log twice
	CadenceOrder     Class = "cadence-order"      // cadences go back, or the event was recorded outside of its cadence
	RecordedOrder    Class = "recorded-order"     // recorded before the event before it
	OccurredAt       Class = "occurred-at"        // occurred after it was recorded, or too long before
	HeadMismatch     Class = "head-mismatch"      // the head at a cadence is not the anchor's
	TreeMismatch     Class = "tree-mismatch"      // the side tree at a cadence is not the anchor's
	HiddenRow        Class = "hidden-row"         // rows that an index does not show

	// Event logs.
	LogMissing  Class = "log-missing"
	LogMismatch Class = "log-mismatch" // does not lead from one anchor's head to the next's

	// Beacons.
	BeaconMissing   Class = "beacon-missing"
	BeaconInvalid   Class = "beacon-invalid"
	BeaconChain     Class = "beacon-chain"
	BeaconSignature Class = "beacon-signature"
	BeaconMismatch  Class = "beacon-mismatch"  // the event at a beacon's length is another
	BeaconTruncated Class = "beacon-truncated" // the chain is shorter than a beacon says
	BeaconLate      Class = "beacon-late"      // events that no beacon tells of in time

	// What the database says of itself.
	HeadDatabase Class = "head-database" // the writer's own heads are not the chains'

	// Outbox and receipts.
	Quarantined     Class = "quarantined"
	EventLost       Class = "event-lost"       // drained from the outbox, not in a chain
	NotEmitted      Class = "not-emitted"      // in a chain, never in the outbox
	MACMismatch     Class = "mac-mismatch"     // the emission MAC is not of this event
	ReceiptMissing  Class = "receipt-missing"  // an event that a receipt is held for is nowhere
	ReceiptMismatch Class = "receipt-mismatch" // it is there, and is another

	// Exports.
	ExportMismatch Class = "export-mismatch"
)
