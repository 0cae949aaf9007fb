package windowing

import (
	"fmt"
	"time"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// SessionConfig is what a session operator is made of.
type SessionConfig struct {
	Name string // the operator's name, part of every row key
	// Gap is the largest distance of two neighbours in a session, above 0. Where
	// GapExpr is set, rows have gaps of their own instead: Row.Args then has one
	// value more than NewArgLayout(Aggregates) lays out, at its end: an Int of
	// nanoseconds, above 0 and not above MaxDuration.
	Gap     time.Duration
	GapExpr string // Bloblang
	// MaxDuration bounds the time from start to end of a session, 0: no bound. It
	// is at least Gap.
	MaxDuration time.Duration
	// GroupBy and Aggregates stand in ascending order of their names, see
	// WindowConfig.
	GroupBy    []GroupField
	Aggregates []Aggregate
	PassLate   bool       // `late: pass`: late rows go on down the chain
	Mode       OutputMode // Append or Update
	// Early (>= 0) is how often, by the wall clock, a session that changed comes out
	// while it is open; in append mode only. It is no part of the definition.
	Early time.Duration
	// Having is that of WindowConfig.
	Having Condition
}

// Revises says that the operator may emit a row key more than once.
func (c *SessionConfig) Revises() bool { return c.Mode != Append || c.Early > 0 }

// Session aggregates the rows of a group between two silences. A row covers
// [t, t + gap]; rows whose covers touch are one session, which covers all of them
// and is reported as [first t, largest t + gap). The covers of a whole batch are
// put together first. Then a session without a row from before the batch is late
// if it ends before late, with all its rows. A session is closed when it ends
// before close, strictly, so that a row at exactly its end still joins, in
// whatever order rows arrive; Spark closes at equality.
//
// With MaxDuration a row takes in the sessions that it touches one by one, the
// earliest first, as long as all together stay within the bound; sessions of a
// group may overlap then, and arrival order matters.
//
// In append mode a session comes out once, when it is closed. In update mode its
// value comes out at the end of each batch that changed it, and nothing at the
// close. With early rows it comes out both at times and at the close. A row that
// came out under bounds that have changed since is taken back first, by a result
// with the timing Deleted and without values.
//
// Rows come out at most 1 ns before late: the stage has a hold of SessionHold.
//
// Invariants: no two sessions of a group could be merged, so that both their
// starts and their ends ascend strictly; a session's place in the heap is never
// behind its end; a row of a closed session is late whatever pair the operator
// hears later (reached).
type Session struct {
	config   SessionConfig
	args     *ArgLayout
	identity *Identity
	growing  []bool // by aggregate: its state grows with its input
	grows    bool   // one of them does

	groups   map[string]*sessionGroup
	closings sessionHeap
	batch    int64 // counts Process since the start
	reached  watermark.Time
	progress bool // reached changed since the last Save

	changed []*session    // to be saved, and some that are gone
	gone    []sessionName // whose records are to be deleted
	unshown []*session    // where rows are revised: changed and not handed out yet, and some that are gone
	pending int           // those of unshown that are not gone
	alarm   alarm         // of early rows
	ordered bool          // unshown is in the order in which it comes out

	doubts  []doubt
	due     []*session
	key, to []byte
	payload []byte
	record  []byte
}

var _ Operator = (*Session)(nil)

// SessionHold is how far rows may lie behind the pair that a session operator
// hears, see Stage.Hold: a session may end at late and its row is 1 ns older.
const SessionHold = 1 * time.Nanosecond

// session is one of them.
type session struct {
	group        *sessionGroup // nil: it is gone
	into         *session      // the one that took it in, where it is gone
	id           int64         // arrival of its first row
	bounds       Span          // the end is covered too
	born         int64         // batch of its first row, 0: before the start
	accumulators []agg.Accumulator
	shown        []shownRow // where rows are revised: what is out for it
	place        int        // in the heap
	stored       storedSession
	dirty        bool // in changed
	pending      bool // in unshown
}

// shownRow is a row that came out and holds until it is taken back or revised.
type shownRow struct {
	bounds   Span
	revision int64
	gone     bool // it was taken back, its number is not used again
}

// doubt is a row that may have to be passed on after the whole batch is merged.
type doubt struct {
	row int
	in  *session // nil: the row takes no part
}

// NewSession makes a session operator with empty state. Names out of order and
// a gap or bound out of range are mistakes of the program and panic.
func NewSession(cfg SessionConfig) *Session {
	var names, fields []string
	for _, g := range cfg.GroupBy {
		names = append(names, g.Name)
	}
	for _, a := range cfg.Aggregates {
		fields = append(fields, a.Name)
	}
	if !ascending(names) || !ascending(fields) {
		panic(fmt.Sprintf("windowing: group_by and aggregates of %q are not in ascending order of unique names", cfg.Name))
	}
	if cfg.Mode == Complete || cfg.Mode == Update && cfg.Early > 0 {
		panic(fmt.Sprintf("windowing: the output of %q cannot be", cfg.Name))
	}
	if (cfg.GapExpr == "") != (cfg.Gap > 0) || cfg.MaxDuration < 0 || cfg.MaxDuration > 0 && cfg.MaxDuration < cfg.Gap {
		panic(fmt.Sprintf("windowing: %q has a gap of %s and a bound of %s", cfg.Name, cfg.Gap, cfg.MaxDuration))
	}
	s := &Session{
		config: cfg, args: NewArgLayout(cfg.Aggregates), identity: NewIdentity(cfg.Name),
		groups: map[string]*sessionGroup{}, reached: watermark.Unset,
	}
	for _, a := range cfg.Aggregates {
		_, grows := a.Call.Function.New(a.Call).(agg.Growing)
		s.growing = append(s.growing, grows)
		s.grows = s.grows || grows
	}
	return s
}

// Process merges the rows of a batch into sessions, then judges.
func (s *Session) Process(in Instant, rows []Row, out *Output) {
	late := max(in.Late, s.reached)
	s.batch++
	for i := range rows {
		row := &rows[i]
		if row.Flag != Data {
			s.doubts = append(s.doubts, doubt{row: i})
			continue
		}
		cover := s.cover(row)
		it := s.add(row, cover)
		if cover.End < late { // else no session that holds it is late
			s.doubts = append(s.doubts, doubt{row: i, in: it})
		}
	}
	s.judge(late, rows, out)
	if s.config.Early > 0 && s.pending > 0 && !s.alarm.set {
		s.alarm.ring(in.Wall.Add(s.config.Early))
	}
}

// cover is the stretch of time that a row takes up, its end included.
func (s *Session) cover(row *Row) Span {
	gap := watermark.Time(s.config.Gap)
	if gap == 0 {
		gap = watermark.Time(row.Args[len(row.Args)-1].AsInt())
	}
	if gap <= 0 {
		panic(fmt.Sprintf("windowing: a row of %q has a gap of %d ns", s.config.Name, gap))
	}
	c := Span{Start: row.Time, End: watermark.EndOfTime}
	if row.Time <= watermark.Max-gap {
		c.End = row.Time + gap
	}
	return c
}

// add puts a row into its session and gives that.
func (s *Session) add(row *Row, cover Span) *session {
	g := s.groups[string(row.Key)]
	if g == nil {
		g = newSessionGroup(string(row.Key))
		s.groups[g.key] = g
	}
	it := s.merge(g, cover)
	if it == nil {
		it = s.open(g, cover, row.Arrival)
	}
	for i, acc := range it.accumulators {
		if in, ok := s.args.input(i, row); ok {
			acc.Add(in)
		}
	}
	s.touch(it)
	return it
}

// open makes a session of a row.
func (s *Session) open(g *sessionGroup, cover Span, arrival int64) *session {
	it := &session{group: g, id: arrival, bounds: cover, born: s.batch,
		accumulators: make([]agg.Accumulator, len(s.config.Aggregates))}
	for i, a := range s.config.Aggregates {
		it.accumulators[i] = a.Call.Function.New(a.Call)
	}
	g.insert(it)
	s.closings.push(it)
	return it
}

// touch notes that a session has to be saved and, where rows are revised, to come
// out.
func (s *Session) touch(it *session) {
	if !it.dirty {
		it.dirty = true
		s.changed = append(s.changed, it)
	}
	if s.config.Revises() && !it.pending {
		it.pending = true
		s.pending++
		s.unshown = append(s.unshown, it)
		s.ordered = false
	}
}

// judge passes on, in their places, the rows that take no part and those of late
// sessions, which are forgotten.
func (s *Session) judge(late watermark.Time, rows []Row, out *Output) {
	for _, d := range s.doubts {
		row := &rows[d.row]
		if d.in == nil {
			out.Pass(*row)
			continue
		}
		it := d.in.now()
		if it.born != s.batch || it.bounds.End >= late {
			continue
		}
		if it.group != nil {
			s.remove(it)
		}
		out.Late(*row, s.config.Name, late.Sub(row.Time), s.config.PassLate)
	}
	clear(s.doubts)
	s.doubts = s.doubts[:0]
}

// now is the session itself, or the one that has taken it in.
func (it *session) now() *session {
	for it.into != nil {
		if it.into.into != nil {
			it.into = it.into.into
		}
		it = it.into
	}
	return it
}

// Definition is what makes the stored state meaningful.
func (s *Session) Definition() []Setting {
	gap := s.config.GapExpr
	if gap == "" {
		gap = s.config.Gap.String()
	}
	settings := []Setting{{Field: "gap", Value: gap}}
	if s.config.MaxDuration > 0 {
		settings = append(settings, Setting{Field: "max_duration", Value: s.config.MaxDuration.String()})
	}
	if s.config.Mode != Append {
		settings = append(settings, Setting{Field: "output_mode", Value: OutputModes[s.config.Mode]})
	}
	for _, g := range s.config.GroupBy {
		settings = append(settings, Setting{Field: "group_by." + g.Name, Value: g.Expr})
	}
	for _, a := range s.config.Aggregates {
		settings = append(settings, Setting{Field: "aggregates." + a.Name, Value: a.Call.Text})
	}
	return settings
}

// Windows is the number of open sessions.
func (s *Session) Windows() int { return len(s.closings) }

// Groups is the number of groups that have one.
func (s *Session) Groups() int { return len(s.groups) }

// Sizes gives Windows and Groups, for metrics.
func (s *Session) Sizes() (windows, groups int) { return s.Windows(), s.Groups() }
