package windowing

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// discard is a Writer that keeps nothing.
type discard struct{ puts int }

func (d *discard) Put(key, value []byte)  { d.puts++ }
func (d *discard) Delete(from, to []byte) {}

// benchWindow counts and sums by a group, in windows of a minute.
func benchWindow(b testing.TB) *Window {
	grid, err := NewTumbling(time.Minute, 0)
	require.NoError(b, err)
	count, err := agg.Parse("count()")
	require.NoError(b, err)
	sum, err := agg.Parse("sum(this.v)")
	require.NoError(b, err)
	return NewWindow(WindowConfig{
		Name: "orders", Assigner: grid, GroupBy: []GroupField{{Name: "k", Expr: "this.k"}},
		Aggregates: []Aggregate{{Name: "n", Call: count}, {Name: "total", Call: sum}},
	})
}

// benchRows gives rows of the first minute, a group each by turns.
func benchRows(n, keys int) []Row {
	rows := make([]Row, n)
	for i := range rows {
		k := (i * 7919) % keys
		rows[i] = Row{
			Time: watermark.Time(i % int(time.Minute)), Arrival: int64(i),
			Key:  agg.String(fmt.Sprintf("customer-%06d", k)).AppendKey(nil),
			Args: []agg.Value{agg.Int(int64(i))},
		}
	}
	return rows
}

func BenchmarkTumbling(b *testing.B) {
	for _, keys := range []int{1, 1000, 100_000} {
		rows := benchRows(max(keys, 1000), keys)
		for _, batch := range []int{1, 1000} {
			name := fmt.Sprintf("keys=%d/batch=%d", keys, batch)
			b.Run("Process/"+name, func(b *testing.B) { benchProcess(b, slices.Clone(rows), batch) })
		}
		b.Run(fmt.Sprintf("Save/keys=%d", keys), func(b *testing.B) { benchSave(b, inWindows(rows[:keys])) })
		b.Run(fmt.Sprintf("Advance/keys=%d", keys), func(b *testing.B) { benchAdvance(b, inWindows(rows[:keys])) })
	}
}

// inWindows repeats rows of one window in so many that they are a thousand: to stop
// the clock takes much longer than to save or to emit a few.
func inWindows(rows []Row) (all []Row) {
	for i := 0; len(all) < 1000; i++ {
		for _, row := range rows {
			row.Time = row.Time.Add(time.Duration(i) * time.Minute)
			all = append(all, row)
		}
	}
	return all
}

// benchProcess reports the time per row of groups that exist. Rows come in another
// order than groups came in.
func benchProcess(b *testing.B, rows []Row, batch int) {
	w, in, out := benchWindow(b), Instant{Late: watermark.Unset, Close: watermark.Unset}, &Output{}
	w.Process(in, rows, out)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	b.ReportAllocs()
	b.ResetTimer()
	for done, at := 0, 0; done < b.N; done += batch {
		if at+batch > len(rows) {
			at = 0
		}
		w.Process(in, rows[at:at+batch], out)
		at += batch
	}
}

// benchSave reports the time per dirty group; rows have one each.
func benchSave(b *testing.B, rows []Row) {
	w, in, out := benchWindow(b), Instant{Late: watermark.Unset, Close: watermark.Unset}, &Output{}
	w.Process(in, rows, out)
	to := &discard{}
	w.Save(to)
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; {
		b.StopTimer()
		n := min(len(rows), b.N-done)
		w.Process(in, rows[:n], out)
		b.StartTimer()
		w.Save(to)
		done += n
	}
}

// benchAdvance reports the time per emitted row, with all its sorting; rows make one
// each.
func benchAdvance(b *testing.B, rows []Row) {
	b.ReportAllocs()
	done := 0
	for ; done < b.N; done += len(rows) {
		b.StopTimer()
		w, in, out := benchWindow(b), Instant{Late: watermark.Unset, Close: watermark.Unset}, &Output{}
		w.Process(in, rows, out)
		in.Close = watermark.EndOfTime
		b.StartTimer()
		for !w.Advance(in, PartLimit, out) {
			out.Reset()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(done), "ns/op") // done is more than b.N
}

var _ kv.Writer = (*discard)(nil)

// benchGrid is benchWindow on another grid.
func benchGrid(b testing.TB, grid Assigner, mode OutputMode) *Window {
	w := benchWindow(b)
	cfg := w.config
	cfg.Assigner, cfg.Mode = grid, mode
	return NewWindow(cfg)
}

// benchEarly lets a window put out early rows every second.
func benchEarly(w *Window) *Window {
	cfg := w.config
	cfg.Early = time.Second
	return NewWindow(cfg)
}

// BenchmarkStream reports the time per row of a stream with 100 groups and a
// thousand rows a second, in batches of 100, closing as it goes.
func BenchmarkStream(b *testing.B) {
	grids := map[string]func() (Assigner, error){
		"tumbling":        func() (Assigner, error) { return NewTumbling(time.Minute, 0) },
		"sliding=6":       func() (Assigner, error) { return NewSliding(time.Minute, 10*time.Second, 0) },
		"sliding=60":      func() (Assigner, error) { return NewSliding(time.Minute, time.Second, 0) },
		"sliding=3600":    func() (Assigner, error) { return NewSliding(time.Hour, time.Second, 0) },
		"cumulative=6":    func() (Assigner, error) { return NewCumulative(time.Minute, 10*time.Second, 0) },
		"update/tumbling": func() (Assigner, error) { return NewTumbling(time.Minute, 0) },
		"update/sliding":  func() (Assigner, error) { return NewSliding(time.Minute, 10*time.Second, 0) },
		"early/tumbling":  func() (Assigner, error) { return NewTumbling(time.Minute, 0) },
		"early/sliding":   func() (Assigner, error) { return NewSliding(time.Minute, 10*time.Second, 0) },
	}
	for _, name := range slices.Sorted(maps.Keys(grids)) {
		b.Run(name, func(b *testing.B) {
			grid, err := grids[name]()
			require.NoError(b, err)
			mode := Append
			if strings.HasPrefix(name, "update/") {
				mode = Update
			}
			w := benchGrid(b, grid, mode)
			if strings.HasPrefix(name, "early/") {
				w = benchEarly(w)
			}
			benchStream(b, w)
		})
	}
}

func benchStream(b *testing.B, w *Window) {
	const batch, step = 100, time.Millisecond
	rows := benchRows(1000, 100)
	out, emitted := &Output{}, 0
	in := Instant{Late: watermark.Unset, Close: watermark.Unset}
	at := watermark.Time(0)
	feed := func(n int) {
		for done := 0; done < n; done += batch {
			from := done % len(rows)
			part := rows[from : from+batch]
			for i := range part {
				at = at.Add(step)
				part[i].Time = at
			}
			in.Wall = at
			w.Process(in, part, out)
			in.Close = at
			for !w.Advance(in, PartLimit, out) {
			}
			in.Late = in.Close
			emitted += len(out.items)
			out.Reset()
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	feed(b.N)
	b.ReportMetric(float64(emitted)/float64(b.N), "rows_out/row")
}
