package windowing

import (
	"errors"
	"fmt"
	"slices"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// Signal says why Run returned.
type Signal uint8

// The reasons for which Run returns.
const (
	Done   Signal = iota // the step is over
	More                 // a bounded part of a close is out: commit, then call Run again
	Call                 // a foreign stage has to process Pending, then Resume
	Broken               // state could not be read back, see Err: the chain is of no more use
)

// Sentinels of the construction of a chain.
var (
	ErrNoWatermark = errors.New("no watermark upstream")
	ErrRevisions   = errors.New("upstream may emit a row key twice")
	ErrDuplicate   = errors.New("duplicate name")
)

// PartLimit is how many results one part of a close holds at about most.
const PartLimit = 4096

// Chain runs batches through stages, one step at a time. It is pure: messages
// are opaque, time is an argument, state goes through kv. One goroutine owns it,
// except for Prepare.
//
// In a step every stage sees the whole batch and advances once. A watermark
// makes the pair (late, close) of the stages behind it; a stage that holds rows
// back by h passes on (late - h, close - h), so that no stage emits a row with a
// time before the late that it passes on. A close that is too large for one part
// stays one step: the stages behind see each part with (late, late) and advance
// with the last one.
type Chain struct {
	stages   []Stage
	frontier []*watermark.Frontier // by stage, nil for others
	config   Config
	out      Output
	exit     []Row
	room     []Row  // memory of the rows that a stage puts out
	marks    []Mark // memory of the next marks
	arrivals int64
	tally    []Tally

	open  bool // a step is under way
	half  bool // and rows of it are between the stages
	front int  // the stages before it have advanced in this step
	at    int  // the stage about to run
	rows  []Row
	lates []watermark.Time // by stage, during a step
	close watermark.Time   // for the stage at front
	clock watermark.Clock
	flush bool
	tick  bool
	told  Pair // by BeginRelayed

	behind  []frontierRecord // for the next Save
	settled bool
	heard   watermark.Time

	unfinished []unfinished // by stage, nil before a part was observed
	err        error        // with Broken
}

// Config is what a chain is made of.
type Config struct {
	Stages []Stage
	// Lead is the number of leading stages whose expressions Prepare evaluates
	// ahead of the step. 0: one by one in the step. A row that fails in one of them
	// gets Err and, in Fails, the number of the stage, and stays a Data row until that
	// stage runs: those before it count it.
	Lead    int
	Prepare func(rows []Row)
	Start   watermark.Clock // when the process started
	Limit   int             // results in a part, 0: PartLimit
	// Behind makes watermarks be saved one Save late. A watermark whose operators
	// save for themselves must not remember, after a crash, a batch that they may
	// have missed: sent again, its older rows would be late by its newer ones.
	Behind bool
	// Memory is about how many bytes of state may stay in memory, 0: all of it. The
	// operators that can do with less than all of their state share it equally.
	Memory int64
}

// NewChain checks the stages and makes a chain with empty state.
func NewChain(cfg Config) (*Chain, error) {
	if err := checkStages(cfg.Stages); err != nil {
		return nil, err
	}
	if cfg.Limit <= 0 {
		cfg.Limit = PartLimit
	}
	n := len(cfg.Stages)
	c := &Chain{stages: cfg.Stages, config: cfg, frontier: make([]*watermark.Frontier, n),
		tally: make([]Tally, n), lates: make([]watermark.Time, n+1), heard: watermark.Unset}
	for i := range cfg.Stages {
		if w := cfg.Stages[i].Watermark; w != nil {
			c.frontier[i] = watermark.NewFrontier(w.Config, cfg.Start)
		}
	}
	return c, nil
}

// checkStages refuses what cannot give right numbers.
func checkStages(stages []Stage) error {
	names := map[string]bool{}
	watermarked, revising := false, ""
	for _, st := range stages {
		if st.Name != "" && names[st.Name] {
			return fmt.Errorf("%s %q: %w: two stages of one chain would share state; set a different name on one of them", st.Kind, st.Name, ErrDuplicate)
		}
		names[st.Name] = true
		if st.Watermark != nil || st.Relay {
			watermarked = true
		}
		if st.Operator == nil {
			continue
		}
		if !watermarked {
			return fmt.Errorf("%s %q: %w: put a watermark before it in the same processors list", st.Kind, st.Name, ErrNoWatermark)
		}
		if revising != "" {
			return fmt.Errorf("%s %q: %w: %q revises its rows and would be counted more than once; use output_mode append without allowed_lateness and early there", st.Kind, st.Name, ErrRevisions, revising)
		}
		if st.Revises {
			revising = st.Name
		}
	}
	return nil
}

// Prepare evaluates the expressions of the leading stages. It may be called from
// several goroutines, for rows that no step has seen.
func (c *Chain) Prepare(rows []Row) {
	if c.config.Prepare != nil {
		c.config.Prepare(rows)
	}
}

// Begin starts a step with a batch of prepared rows, which the chain then owns.
// No step may be under way.
func (c *Chain) Begin(rows []Row, now watermark.Clock) { c.begin(rows, now, false) }

// BeginTick starts a step without rows, for time that passed.
func (c *Chain) BeginTick(now watermark.Clock) {
	c.begin(nil, now, false)
	c.tick = true
}

// BeginFlush starts a step that closes everything, as at the end of time. The
// watermarks stay what they are; the operators are spent afterwards, so that
// nothing of them may be saved any more.
func (c *Chain) BeginFlush(now watermark.Clock) { c.begin(nil, now, true) }

func (c *Chain) begin(rows []Row, now watermark.Clock, flush bool) {
	if c.open {
		panic("windowing: a step is under way")
	}
	c.open, c.half, c.front, c.at, c.rows = true, true, 0, 0, rows
	c.clock, c.flush, c.tick, c.close = now, flush, false, watermark.Unset
	late := watermark.Unset
	for i := range c.stages {
		c.lates[i] = late
		if f := c.frontier[i]; f != nil {
			late = f.Watermark()
		}
		if c.stages[i].Relay {
			late = c.told.Late
		}
		late = late.Add(-c.stages[i].Hold)
	}
	c.lates[len(c.stages)] = late
	for i := range rows {
		c.arrivals++
		rows[i].Arrival = c.arrivals
	}
}

// Open says that a step is under way, after Load too: then Run goes on with it.
func (c *Chain) Open() bool { return c.open }

// Whole says that the state may be saved: between two steps and after More. With
// rows between the stages it is half done.
func (c *Chain) Whole() bool { return !c.half }

// Run goes on with the step until it is done, a part of it is complete or a
// foreign stage has to be called.
func (c *Chain) Run() Signal {
	c.half = true
	if len(c.exit) > 0 { // nobody took them, and their memory is used again
		c.exit = slices.Clone(c.exit)
	}
	for {
		if c.at == len(c.stages) {
			c.leave()
			if c.front == len(c.stages) {
				c.open = false
				return Done
			}
			c.at = c.front
			return More
		}
		st := &c.stages[c.at]
		switch {
		case st.Foreign:
			if len(c.rows) > 0 {
				return Call
			}
			c.passed()
		case st.Watermark != nil:
			c.observe(st)
		case st.Relay:
			c.relay()
		default:
			if c.operate(st); c.err != nil {
				return Broken
			}
		}
		c.at++
	}
}

// Err is why Run said Broken.
func (c *Chain) Err() error { return c.err }

// Pending gives the foreign stage to be called and the rows for it.
func (c *Chain) Pending() (stage int, rows []Row) { return c.at, c.rows }

// Resume hands over what the foreign stage made of the rows.
func (c *Chain) Resume(rows []Row) {
	for i := range rows {
		c.arrivals++
		rows[i].Arrival = c.arrivals
	}
	c.rows = rows
	c.passed()
	c.at++
}

// passed lets the front move over a stage that has nothing to close.
func (c *Chain) passed() {
	if c.at == c.front {
		c.front++
	}
}

// prepared says that the rows of the stage were evaluated ahead of the step.
func (c *Chain) prepared(rows []Row) bool {
	return c.at < c.config.Lead && c.front <= c.at && len(rows) > 0
}

// extract evaluates what the stage needs, unless that was done ahead, and counts
// the rows that are invalid since the stage before: each row once. What was found
// ahead of the step to fail here has been a row like any other up to here.
func (c *Chain) extract(st *Stage) {
	if len(c.rows) > 0 && !c.prepared(c.rows) {
		st.Binding.Extract(c.rows)
	}
	for i := range c.rows {
		row := &c.rows[i]
		if row.Flag == Data && row.Err != nil && int(row.Fails) <= c.at {
			row.Flag, row.Message = Invalid, st.Binding.Fail(row.Message, row.Err)
		}
		if row.Flag == Invalid && !row.counted {
			row.counted = true
			c.tally[c.at].invalid(row.Err)
		}
	}
}

// observe runs a watermark stage: rows move the frontier, W moves once.
func (c *Chain) observe(st *Stage) {
	c.extract(st)
	f := c.frontier[c.at]
	limit := watermark.EndOfTime
	if d := st.Watermark.MaxAhead; d > 0 {
		limit = c.clock.Wall.Add(d)
	}
	spoken := c.at == c.front && c.ended(c.at)
	for i := range c.rows {
		row := &c.rows[i]
		if row.Flag != Data {
			continue
		}
		if row.Time > limit {
			row.Flag, row.counted = Invalid, true
			row.Err = fmt.Errorf("event time %s is more than max_ahead %s beyond the wall clock %s: mend the sender's clock or raise max_ahead", row.Time, st.Watermark.MaxAhead, c.clock.Wall)
			row.Message = st.Binding.Fail(row.Message, row.Err)
			c.tally[c.at].invalid(row.Err)
			continue
		}
		f.Observe(int(row.Source), row.Partition, row.Time)
		if spoken = true; c.at != c.front {
			c.later(c.at).add(row)
		}
	}
	if c.at != c.front {
		return
	}
	late, done := f.Watermark(), watermark.EndOfTime
	switch {
	case c.flush:
	case c.tick && !spoken:
		late, done = f.Tick(c.clock)
	default:
		late, done = f.Advance(c.clock)
	}
	c.lates[c.at+1], c.close = late, done
	c.front++
}

// operate runs a stateful stage.
func (c *Chain) operate(st *Stage) {
	c.extract(st)
	late := c.lates[c.at]
	c.out.Reset()
	if len(c.rows) > 0 {
		st.Operator.Process(Instant{Late: late, Close: late, Wall: c.clock.Wall}, c.rows, &c.out)
	}
	if c.at == c.front && c.out.err == nil {
		in := Instant{Late: late, Close: c.close, Wall: c.clock.Wall}
		if st.Operator.Advance(in, c.config.Limit, &c.out) {
			c.front++
			c.lates[c.at+1], c.close = late.Add(-st.Hold), c.close.Add(-st.Hold)
		}
	}
	if err := c.out.err; err != nil {
		c.err = fmt.Errorf("state of %s %q: %w", st.Kind, st.Name, err)
		return
	}
	c.render(st)
}

// domain is W of the event-time domain of the stage that runs.
func (c *Chain) domain() watermark.Time {
	for i := c.at; i >= 0; i-- {
		if f := c.frontier[i]; f != nil {
			return f.Watermark()
		}
	}
	return c.heard
}
