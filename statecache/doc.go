// Package statecache keeps the state of operators and the entries of a cache
// in one bbolt file that survives a crash.
//
// A File is opened once per process: every Open of the same file returns the
// same handle, counted. In it, each name is a Space (a kv.Store, leased to one
// owner) or a Cache (shared, with expiry). Spaces and caches of a file may
// write from different goroutines: writes that wait together share one
// transaction and its syncs.
//
// A Space is a log in front of a sorted base. A commit appends the batch as it
// is under a growing sequence number (a few pages), and keeps its bytes in
// memory, where a hash index finds the newest operation on each key. When the log
// has grown to some MiB its generation is frozen. What the next generation puts or
// deletes again never reaches the base; the rest is put in order, a portion with each
// commit, and then folded into the base, a bounded slice with each commit, in key
// order and in its transaction; then the generation's log goes in one piece. So a
// commit costs what it changes, whatever the state weighs, and memory holds two
// generations and never the base. It is a log-structured merge tree with two levels
// whose merge is done by the writer a little at a time (O'Neil et al., 1996).
//
// # Layout of the file
//
//	connect-windowed            our mark: "format" -> version record
//	windowed / NAME / state     record: generations, sequence numbers, fold position
//	                / base      key -> record of the folded state
//	                / log ID    sequence, piece -> bytes of a batch record
//	cache    / NAME / items     key -> record with expiry and value
//	                / expiry    expiry time, key -> nothing
//
// Every record carries a version and a CRC32C that covers its key.
//
// # Caveats
//
//   - A file never shrinks. Deleted space is used again; to give it back to the
//     disk, stop and run `bbolt compact`.
//   - The free list is written with every commit (without it, bbolt rebuilds it
//     at the start in a goroutine of its own, whose panics on damage nobody can
//     recover). It costs 8 bytes for every free page of 4 KiB. It is kept as an
//     array, which takes the lowest free pages first: the hash map takes any,
//     so the run of pages that the list itself needs is soon to be found
//     nowhere, and the file grows with every commit (three million keys under
//     random updates: 2400 MB and growing, 790 MB and constant as an array).
//   - A file that is mapped in memory can fault when its disk fails. Every
//     access recovers faults and bbolt's panics and returns an error that wraps
//     ErrDamaged. After damage was met in a write, the handle writes no more.
//   - Network file systems are not supported, as with bbolt itself.
package statecache
