// Package watermark turns event times into a watermark: the statement that rows
// older than W are no longer waited for. It is pure: the standard library only,
// no goroutines, no clock of its own. Whoever owns a Frontier passes the time in.
//
// # Event time
//
// [Time] is a number of nanoseconds since 1970, in UTC and without leap seconds,
// from 1677-09-21 to 2262-04-11. Its arithmetic saturates and floors, so it is right
// before 1970 and never wraps. Two values outside that range are not event times:
// [Unset] sorts below and [EndOfTime] above all of them.
//
// Times are read strictly. [ParseRFC3339] takes RFC 3339 with an upper-case T and a
// zone and nothing else; a [Unit] takes numbers and never guesses the unit from their
// size. What does not fit is an error, never time 0 and never a wrapped value.
//
// # Frontier
//
// A [Frontier] holds the largest event time of every partition of every source and
// derives W from it: inside a source the minimum (or maximum) over the active
// partitions less the source's delay, across sources the minimum.
//
//	f := watermark.NewFrontier(cfg, clock)
//	for each batch {
//		for each valid row { f.Observe(source, partition, t) }
//		late, close := f.Advance(clock)
//	}
//
// A batch is judged with the pair: rows are late by W before the batch, windows close
// by W after it. So the order of rows inside a batch means nothing. The pair is that
// of Spark's micro-batches (SPARK-40925).
//
// # Caveats
//
//   - The last windows of a stream stay open: only newer rows move W. That is right,
//     and IdleTimeout does not change it, since silence of everything idles nobody.
//     IdleAdvance does, and gives up the promise that rows at most Delay behind the
//     newest are kept: in silence it starts from the newest row of each source, whatever
//     its slower partitions have reached.
//   - A declared partition or source that never speaks keeps W unset for IdleTimeout,
//     and without one for ever. [Frontier.Holder] names it.
//   - An undeclared partition that first speaks after W has passed its rows brings
//     late rows. StartupGrace covers the start only; declare partitions where this
//     matters.
//   - A row far in the future moves W there for good. The guard against it
//     (max_ahead) is the caller's, who must not Observe such a row.
//   - W never goes back: not by a partition that wakes up, not by a larger Delay, not
//     by a restart.
//   - Partitions are remembered for ever, some 150 bytes each. A partition is meant to
//     be a shard of a topic, a file or a device, not a user or a request.
package watermark
