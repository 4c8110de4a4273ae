// Package ledger keeps the compliance ledger going: it drains the outbox, publishes anchors, and watches both.
package ledger
