// Package notify tells the subscribers of a thread what happens in it, and clients that were away what they missed.
//
// Invariants:
//   - An event of a thread is stored, with the thread's next number, in the transaction of the change that it tells of (Queue). Numbers have no
//     gaps and follow the order of commits: whoever has seen number n has seen all that was committed before it, or knows what is missing.
//   - It is published after the commit, with its number. Who dies in between leaves it to be read (After); a NewMessage or a ThreadUpdate is
//     published again by Sweep besides, so a subscriber may see it twice and never misses it for good while it listens.
//   - What is kept of a thread is an unbroken end of its events: those of a turn until Kept after the turn has ended, the others until Kept after
//     they happened (Prune). What is older is told of by Page.PrunedBefore, and is in the thread: its messages, its turns, its status.
//   - A message's text is not stored again: its event points to it.
package notify
