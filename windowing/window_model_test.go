package windowing

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// gridKind is a kind of grid in random tests.
type gridKind int

const (
	tumblingGrid gridKind = iota
	slidingGrid
	cumulativeGrid
)

// stream is a random case: rows in batches, W = newest - delay.
type stream struct {
	kind              gridKind
	size, hop, offset time.Duration // hop: the slide or the step
	delay             time.Duration
	mode              OutputMode
	lateness          time.Duration
	early             time.Duration
	having            bool             // sums that 3 divides are held back
	walls             []watermark.Time // of the batches, where early rows come out
	batches           [][]Row
}

func (s stream) String() string {
	return fmt.Sprintf("kind %d size %s hop %s offset %s delay %s mode %d lateness %s early %s having %t", s.kind, s.size, s.hop, s.offset, s.delay, s.mode, s.lateness, s.early, s.having)
}

// randomStream has event times around one instant, which may be an end of time.
func randomStream(r *rand.Rand, kind gridKind) stream {
	sizes := []time.Duration{1, 2, 7, 10, 60, 1000, time.Second, math.MaxInt64}
	centres := []watermark.Time{0, 0, 1_700_000_000_000_000_000, -1_700_000_000_000_000_000, watermark.Min, watermark.Max}
	s := stream{kind: kind, size: sizes[r.IntN(len(sizes))], offset: time.Duration(edgeInt(r)), delay: time.Duration(r.Int64N(100))}
	s.hop = s.size
	switch kind {
	case slidingGrid:
		s.hop = max(1, s.size/20) + time.Duration(r.Int64N(int64(s.size-max(1, s.size/20)+1)))
	case cumulativeGrid:
		s.hop = max(1, s.size/time.Duration(1+r.IntN(8)))
		s.size = s.size / s.hop * s.hop
	}
	centre := centres[r.IntN(len(centres))]
	spread := 1 + r.Int64N(500)
	n := 1 + r.IntN(200)
	drift := r.Int64N(10)
	for i := 0; i < n; {
		var batch []Row
		for range 1 + r.IntN(1+r.IntN(20)) {
			i++
			at := centre.Add(time.Duration(int64(i)*drift + r.Int64N(spread) - spread/2))
			key := []agg.Value{agg.Null(), agg.Int(int64(r.IntN(3))), agg.String(string(rune('a' + r.IntN(3))))}[r.IntN(3)]
			batch = append(batch, Row{Time: at, Arrival: int64(i), Key: key.AppendKey(nil), Args: []agg.Value{agg.Int(int64(i))}})
		}
		s.batches = append(s.batches, batch)
	}
	return s
}

func (s stream) grid(t testing.TB) (grid Assigner) {
	var err error
	switch s.kind {
	case slidingGrid:
		grid, err = NewSliding(s.size, s.hop, s.offset)
	case cumulativeGrid:
		grid, err = NewCumulative(s.size, s.hop, s.offset)
	default:
		grid, err = NewTumbling(s.size, s.offset)
	}
	require.NoError(t, err)
	return grid
}

func (s stream) window(t testing.TB) *Window {
	var having func(*Result) (bool, error)
	if s.having {
		having = func(res *Result) (bool, error) { return res.Values[1].AsInt()%3 != 0, nil }
	}
	return NewWindow(WindowConfig{
		Name: "w", Assigner: s.grid(t), GroupBy: []GroupField{{Name: "k", Expr: "this.k"}},
		Aggregates: parseAggregates(t, "count()", "sum(this.v)", "first(this.v)", "last(this.v)"), PassLate: true,
		Mode: s.mode, Lateness: s.lateness, Early: s.early, Having: having,
	})
}

// steps gives W before and after each batch.
func (s stream) steps() (pairs []Instant) {
	w := watermark.Unset
	for i, batch := range s.batches {
		in := Instant{Late: w, Close: w}
		if s.walls != nil {
			in.Wall = s.walls[i]
		}
		for _, row := range batch {
			in.Close = max(in.Close, row.Time.Add(-s.delay))
		}
		w = in.Close
		pairs = append(pairs, in)
	}
	return pairs
}

// spans gives every window that contains t, by looking at the grid around it.
func (s stream) spans(t watermark.Time) (spans []Span) {
	every := s.hop
	if s.kind == cumulativeGrid {
		every = s.size
	}
	at, hop, size := big.NewInt(int64(t)), big.NewInt(int64(every)), big.NewInt(int64(s.size))
	k := new(big.Int).Sub(at, big.NewInt(int64(s.offset)))
	k.Div(k, hop) // Euclidean, rounds down for a positive divisor
	start := new(big.Int).Add(k.Mul(k, hop), big.NewInt(int64(s.offset)))
	add := func(end *big.Int) {
		span := Span{Start: cut(start), End: cut(end)}
		if end.Cmp(at) > 0 && (len(spans) == 0 || spans[len(spans)-1] != span) {
			spans = append(spans, span)
		}
	}
	if s.kind == cumulativeGrid {
		for n := s.hop; n > 0 && n <= s.size; n += s.hop {
			add(new(big.Int).Add(start, big.NewInt(int64(n))))
		}
		return spans
	}
	for {
		end := new(big.Int).Add(start, size)
		if end.Cmp(at) <= 0 {
			return spans
		}
		add(end)
		start.Sub(start, hop)
	}
}

// modelCell is one group of one window.
type modelCell struct {
	span Span
	key  string
}

func (c modelCell) before(d modelCell) bool {
	if n := c.span.Compare(d.span); n != 0 {
		return n < 0
	}
	return c.key < d.key
}

// model gives the output by the definitions and nothing else.
type model struct {
	s        stream
	rows     map[modelCell][]Row
	revision map[modelCell]int
	final    map[modelCell]bool
	changed  map[modelCell]bool
	out      map[modelCell]bool // its row is out there
	stirs    map[modelCell]bool // waits for the alarm
	alarm    *watermark.Time
	lines    []string
}

// oracle gives the lines of each batch, and of the end of time.
func (s stream) oracle() (output [][]string) {
	m := &model{s: s, rows: map[modelCell][]Row{}, revision: map[modelCell]int{}, final: map[modelCell]bool{},
		out: map[modelCell]bool{}, stirs: map[modelCell]bool{}}
	steps := s.steps()
	for i, in := range steps {
		output = append(output, m.step(in, s.batches[i]))
	}
	return append(output, m.step(Instant{Late: steps[len(steps)-1].Close, Close: watermark.EndOfTime}, nil))
}

func (m *model) step(in Instant, rows []Row) []string {
	m.lines, m.changed = nil, map[modelCell]bool{}
	for _, row := range rows {
		kept := false
		for _, span := range m.s.spans(row.Time) {
			if m.s.mode != Complete && m.passed(span, in.Late) {
				continue
			}
			kept = true
			c := modelCell{span, string(row.Key)}
			m.rows[c] = append(m.rows[c], row)
			m.changed[c] = true
		}
		if !kept {
			m.lines = append(m.lines, fmt.Sprintf("row at %d flag %d", row.Time, Late))
		}
	}
	switch m.s.mode {
	case Append:
		m.emit(func(c modelCell) bool { return m.changed[c] && c.span.End <= in.Late }, in)
		m.early(in)
		m.emit(func(c modelCell) bool { return !m.final[c] && c.span.End > in.Late && c.span.End <= in.Close }, in)
	case Update:
		m.emit(func(c modelCell) bool { return m.changed[c] }, in)
	case Complete:
		m.emit(func(modelCell) bool { return len(m.changed) > 0 }, in)
		return m.lines
	}
	for c := range m.rows {
		if m.passed(c.span, in.Close) {
			delete(m.rows, c)
		}
	}
	return m.lines
}

// early emits what changed in windows that are open, when the alarm rings, which
// the first change sets.
func (m *model) early(in Instant) {
	if m.s.early == 0 {
		return
	}
	for c := range m.changed {
		if c.span.End > in.Late {
			m.stirs[c] = true
		}
	}
	if m.alarm == nil && len(m.stirs) > 0 {
		at := in.Wall.Add(m.s.early)
		m.alarm = &at
	}
	for c := range m.stirs {
		if c.span.End <= in.Close {
			delete(m.stirs, c)
		}
	}
	if m.alarm == nil || len(m.stirs) > 0 && in.Wall < *m.alarm {
		return
	}
	m.emit(func(c modelCell) bool { return m.stirs[c] }, in)
	m.stirs, m.alarm = map[modelCell]bool{}, nil
}

// passed says whether end + lateness <= w.
func (m *model) passed(s Span, w watermark.Time) bool {
	last := new(big.Int).Add(big.NewInt(int64(s.End)), big.NewInt(int64(m.s.lateness)))
	return w == watermark.EndOfTime || last.Cmp(big.NewInt(int64(w))) <= 0
}

func (m *model) emit(due func(c modelCell) bool, in Instant) {
	var cells []modelCell
	for c := range m.rows {
		if due(c) {
			cells = append(cells, c)
		}
	}
	sort.Slice(cells, func(i, j int) bool { return cells[i].before(cells[j]) })
	for _, c := range cells {
		timing := Early
		if c.span.End <= in.Late {
			timing = AfterEnd
		} else if c.span.End <= in.Close {
			timing = OnTime
		}
		m.final[c] = m.final[c] || timing != Early
		line, keep := modelLine(c, m.rows[c]), true
		if m.s.having && modelSum(m.rows[c])%3 == 0 {
			line, timing, keep = modelGroup(c)+" ", Deleted, false
			if !m.out[c] {
				continue
			}
		}
		m.out[c] = keep
		m.revision[c]++
		if timing != OnTime || m.revision[c] != 1 {
			line += fmt.Sprintf(" %s %d", timing, m.revision[c])
		}
		m.lines = append(m.lines, line)
	}
}

func modelSum(rows []Row) (sum int64) {
	for _, row := range rows {
		sum += row.Args[0].AsInt()
	}
	return sum
}

func modelGroup(c modelCell) string {
	v, _, err := agg.DecodeKey([]byte(c.key))
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("[%d,%d) %s", c.span.Start, c.span.End, v.AppendJSON(nil))
}

func modelLine(c modelCell, rows []Row) string {
	first, last := rows[0], rows[0]
	for _, row := range rows {
		if row.Time < first.Time || row.Time == first.Time && row.Arrival < first.Arrival {
			first = row
		}
		if row.Time > last.Time || row.Time == last.Time && row.Arrival > last.Arrival {
			last = row
		}
	}
	return fmt.Sprintf("%s %d %d %d %d", modelGroup(c), len(rows), modelSum(rows), first.Args[0].AsInt(), last.Args[0].AsInt())
}
