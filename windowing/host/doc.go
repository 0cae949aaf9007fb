// Package host runs a chain for an input or a processor: it owns the chain, the
// store, the applied positions and the rows that are not delivered yet.
//
// # Data path
//
// A batch is prepared by its reader, offered through the mailbox and applied by
// the owner goroutine as one step of the chain. When the mailbox is empty, or
// enough has been applied, the owner writes what changed (operators, watermarks,
// positions, rows for the outbox) into one write set and hands it to the
// committer. While the committer waits for the disk the owner goes on; what it
// applies meanwhile goes into the next write set, so that commits group
// themselves. After a commit the batches in it are acknowledged to their source
// and their rows may leave.
//
// # Ownership
//
// The owner goroutine owns everything. Readers, the committer, the goroutine that
// calls acknowledgements and the one that runs foreign processors talk to it by
// channel; it never blocks on a send. There is no mutex.
//
// # Invariants
//
//   - A source acknowledgement is called after the commit that holds its batch,
//     never before, and never from the owner.
//   - One write set is in flight at a time. A failed commit is tried again with
//     the same write set: nothing is encoded twice.
//   - While a foreign processor runs, the chain is in the middle of a step: no
//     operator state is saved. Settled rows may be.
//   - A row leaves only after the commit that put it into the outbox, and is
//     removed from it by a commit after its delivery.
//   - What makes input wait is the number of rows that nobody read yet, never the
//     number of rows not yet acknowledged: an output that batches would otherwise
//     wait for rows that wait for it.
package host
