package windowing

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// benchSession counts and sums by a group, in sessions with a gap of a minute.
func benchSession(b testing.TB, update bool) *Session {
	mode := Append
	if update {
		mode = Update
	}
	return NewSession(SessionConfig{Name: "visits", Gap: time.Minute, Mode: mode,
		GroupBy: []GroupField{{Name: "k", Expr: "this.k"}}, Aggregates: parseAggregates(b, "count()", "sum(this.v)")})
}

// BenchmarkSession reports the time per row: by turns each key has a row a second
// for a minute, then all are silent for longer than the gap.
func BenchmarkSession(b *testing.B) {
	for _, keys := range []int{1, 1000, 100_000} {
		for _, batch := range []int{1, 1000} {
			for _, update := range []bool{false, true} {
				b.Run(fmt.Sprintf("Step/keys=%d/batch=%d/update=%v", keys, batch, update), func(b *testing.B) {
					benchSessionSteps(b, keys, batch, update)
				})
			}
		}
		if keys == 1 {
			continue // the timer would be stopped for every row
		}
		b.Run(fmt.Sprintf("Save/keys=%d", keys), func(b *testing.B) { benchSessionSave(b, keys) })
		b.Run(fmt.Sprintf("Advance/keys=%d", keys), func(b *testing.B) { benchSessionAdvance(b, keys) })
	}
	b.Run("Memory", benchSessionMemory)
}

func sessionKeys(n int) [][]byte {
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = agg.String(fmt.Sprintf("customer-%06d", (i*7919)%n)).AppendKey(nil)
	}
	return keys
}

// benchSessionSteps runs whole steps: Process, then Advance to the newest row.
func benchSessionSteps(b *testing.B, keys, batch int, update bool) {
	s, out, names := benchSession(b, update), &Output{}, sessionKeys(keys)
	rows, in := make([]Row, batch), unsetInstant
	args := []agg.Value{agg.Int(1)}
	turn, emitted := 0, int64(0)
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; done += batch {
		for i := range rows {
			second := turn / keys
			at := watermark.Time(second+second/60*90) * watermark.Time(time.Second)
			rows[i] = Row{Time: at, Arrival: int64(turn), Key: names[turn%keys], Args: args}
			turn++
		}
		s.Process(Instant{Late: in.Late, Close: in.Late}, rows, out)
		in.Close = max(in.Late, rows[batch-1].Time)
		for !s.Advance(in, PartLimit, out) {
			emitted += out.tally.Emitted
			out.Reset()
		}
		emitted += out.tally.Emitted
		out.Reset()
		in.Late = in.Close
		s.gone = s.gone[:0]
		for _, it := range s.changed {
			it.dirty = false
		}
		s.changed = s.changed[:0]
	}
	b.ReportMetric(float64(emitted)/float64(b.N), "emitted/row")
}

// benchSessionSave reports the time per dirty session.
func benchSessionSave(b *testing.B, keys int) {
	s, out, names := benchSession(b, false), &Output{}, sessionKeys(keys)
	rows := make([]Row, keys)
	for i := range rows {
		rows[i] = Row{Time: 1, Arrival: int64(i), Key: names[i], Args: []agg.Value{agg.Int(1)}}
	}
	to := &discard{}
	b.ReportAllocs()
	for done := 0; done < b.N; {
		b.StopTimer()
		n := min(keys, b.N-done)
		s.Process(unsetInstant, rows[:n], out)
		b.StartTimer()
		s.Save(to)
		done += n
	}
}

// benchSessionAdvance reports the time per closed session.
func benchSessionAdvance(b *testing.B, keys int) {
	names, out := sessionKeys(keys), &Output{}
	b.ReportAllocs()
	for done := 0; done < b.N; done += keys {
		b.StopTimer()
		s := benchSession(b, false)
		for i := range keys {
			s.Process(unsetInstant, []Row{{Time: watermark.Time(i % 1000), Arrival: int64(i), Key: names[i], Args: []agg.Value{agg.Int(1)}}}, out)
		}
		b.StartTimer()
		for !s.Advance(Instant{Close: watermark.EndOfTime}, PartLimit, out) {
			out.Reset()
		}
		out.Reset()
	}
}

// benchSessionMemory reports the bytes that an open session keeps.
func benchSessionMemory(b *testing.B) {
	keys := min(max(b.N, 1000), 100_000) // more say the same
	names, out := sessionKeys(keys), &Output{}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := benchSession(b, false)
	for i := range keys {
		s.Process(unsetInstant, []Row{{Time: watermark.Time(i), Arrival: int64(i), Key: names[i], Args: []agg.Value{agg.Int(1)}}}, out)
	}
	s.Save(&discard{})
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(keys), "bytes/session")
	runtime.KeepAlive(s)
}
