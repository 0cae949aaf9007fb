package windowing

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// JoinType says which rows of an interval join come out.
type JoinType uint8

// The types of a join, as in SQL.
const (
	InnerJoin JoinType = iota // pairs
	LeftJoin                  // pairs, and left rows without a partner
	RightJoin                 // pairs, and right rows without a partner
	FullJoin                  // pairs, and rows of both sides without a partner
	SemiJoin                  // left rows with a partner, once
	AntiJoin                  // left rows without a partner
)

// JoinTypes are the texts of the types, by their value.
var JoinTypes = [...]string{InnerJoin: "inner", LeftJoin: "left", RightJoin: "right", FullJoin: "full", SemiJoin: "semi", AntiJoin: "anti"}

// The sides of a join. A binding puts one of them as an Int into Row.Args[0].
const (
	LeftSide    = 0
	RightSide   = 1
	NeitherSide = -1 // the row passes untouched
)

// ErrFanOut says that a row has more partners than max_matches allows.
var ErrFanOut = errors.New("too many matches")

// Codec turns messages into bytes for operators that keep rows in their state,
// and back. The bytes are the operator's own. It is called by the owner.
type Codec interface {
	// Encode appends what is kept of a message.
	Encode(b []byte, m Message) []byte
	// Decode makes a message of what Encode appended. A join never calls it: its
	// binding renders results out of the bytes.
	Decode(data []byte) (Message, error)
}

// JoinSide is one input of a join. Both texts are part of the definition.
type JoinSide struct {
	Source string // of the watermark
	Key    string // Bloblang
}

// JoinConfig is what a join operator is made of.
type JoinConfig struct {
	Name  string // the operator's name, part of every row key
	Type  JoinType
	Sides [2]JoinSide // LeftSide and RightSide
	// A pair matches where left.t + Lower <= right.t <= left.t + Upper, with < for
	// a bound that is excluded. Bounds may be negative.
	Lower, Upper               time.Duration
	ExcludeLower, ExcludeUpper bool
	MaxMatches                 int // partners of one row, 0: any number
	// Delay is about how far rows may be behind, 0 where nobody knows: it sizes the
	// pieces in which rows are kept, and may change freely.
	Delay    time.Duration
	PassLate bool
	Codec    Codec
}

// Hold is how far rows of the join may lie behind the pair that it hears, see
// Stage.Hold: a row without a partner comes out when none can come any more.
func (c *JoinConfig) Hold() (h time.Duration) {
	outer := c.outer()
	if outer[LeftSide] {
		h = max(h, c.Upper)
	}
	if outer[RightSide] {
		h = max(h, negated(c.Lower))
	}
	return h
}

// outer says for which sides rows without a partner come out.
func (c *JoinConfig) outer() [2]bool {
	return [2]bool{
		LeftSide:  c.Type == LeftJoin || c.Type == FullJoin || c.Type == AntiJoin,
		RightSide: c.Type == RightJoin || c.Type == FullJoin,
	}
}

// halved says that rows come out with their left side only.
func (c *JoinConfig) halved() bool { return c.Type == SemiJoin || c.Type == AntiJoin }

// Empty says that no two times lie within the bounds.
func (c *JoinConfig) Empty() bool {
	low, high := c.distances()
	return low > high
}

// distances are the smallest and the largest right.t - left.t of a pair.
func (c *JoinConfig) distances() (low, high time.Duration) {
	low, high = c.Lower, c.Upper
	if c.ExcludeLower && low < math.MaxInt64 {
		low++
	}
	if c.ExcludeUpper && high > math.MinInt64 {
		high--
	}
	return low, high
}

// Join matches rows of two sides with equal keys whose times lie within an
// interval, as Spark's stream-stream join with a time range condition does.
//
// A row older than late is late. Every other row is matched on arrival with what
// is there of the other side, then kept until no partner can arrive any more: a
// left row until left.t + upper < close, a right row until right.t - lower <
// close. A row of an outer side that went without a partner comes out then, once.
// A null key matches nothing: an outer row with one comes out at once.
//
// A pair has the larger of its two times. A semi join has each left row come out
// once, at the end of the batch that brought its first partner, with the larger
// of its own time and the smallest of its partners'. So nothing but MaxMatches
// depends on the order of the rows in a batch.
//
// Rows lie in segments of their time by side, which go as a whole. A row that no
// partner can reach any more counts as evicted, wherever it still is. With a bound on
// memory (Bounded) rows that are on disk leave it, and their segment has a filter that
// tells most keys which have no row there.
//
// Invariants: rows of a key and side lie in the order (time, arrival), which is
// the order of eviction, so that the one to be evicted is the first of its list; a
// row is counted as matched before the pair is handed on; a row of a closed
// interval is late whatever pair the operator hears later (reached).
type Join struct {
	resident
	config    JoinConfig
	identity  *Identity
	outer     [2]bool
	counted   [2]bool // whether rows of a side need to know that they have matched
	low, high time.Duration
	hold      [2]time.Duration // how long rows of a side are kept

	keys     map[string]*joinKey
	rows     int // in memory
	segments [2]segments[*joinRow]
	due      [2]minHeap[*joinRow] // of an outer side: what is in memory
	horizon  [2]instant           // of an outer side: rows up to it without a partner are in memory
	passed   [2]instant           // of an outer side: rows up to it are evicted
	reached  watermark.Time
	progress bool // reached or passed changed since the last Save

	changed []*joinRow          // to be saved, and some that are gone
	doomed  [2][]watermark.Time // segments whose records are to be deleted
	gone    []*joinRow          // whose records are to be deleted one by one
	first   []*joinRow          // semi join: left rows that the batch matched
	key     []byte
	rest    []byte
	group   []byte
	payload []byte
	record  []byte
}

var (
	_ Operator = (*Join)(nil)
	_ Bounded  = (*Join)(nil)
)

// NewJoin makes a join with empty state. Bounds that nothing meets are a mistake
// of the program and panic.
func NewJoin(cfg JoinConfig) *Join {
	if cfg.Empty() || cfg.MaxMatches < 0 || int(cfg.Type) >= len(JoinTypes) || cfg.MaxMatches > 0 && cfg.halved() {
		panic(fmt.Sprintf("windowing: join %q of type %d from %s to %s with %d matches", cfg.Name, cfg.Type, cfg.Lower, cfg.Upper, cfg.MaxMatches))
	}
	j := &Join{config: cfg, identity: NewIdentity(cfg.Name), outer: cfg.outer(), keys: map[string]*joinKey{}, reached: watermark.Unset,
		hold:    [2]time.Duration{LeftSide: cfg.Upper, RightSide: negated(cfg.Lower)},
		horizon: [2]instant{beginning, beginning}, passed: [2]instant{beginning, beginning}}
	j.low, j.high = cfg.distances()
	for side := range j.counted {
		j.counted[side] = j.outer[side] || cfg.MaxMatches > 0 || cfg.Type == SemiJoin && side == LeftSide
	}
	return j
}

// negated is -d; the smallest duration becomes the largest.
func negated(d time.Duration) time.Duration {
	if d == math.MinInt64 {
		return math.MaxInt64
	}
	return -d
}

// nullKey is the key that matches nothing.
var nullKey = agg.Null().AppendKey(nil)

// Process matches the rows of a batch.
func (j *Join) Process(in Instant, rows []Row, out *Output) {
	late := max(in.Late, j.reached)
	for i := range rows {
		row := &rows[i]
		if row.Flag != Data || row.Args[0].AsInt() == NeitherSide {
			out.Pass(*row)
			continue
		}
		side := int(row.Args[0].AsInt())
		switch {
		case row.Time < late:
			out.Late(*row, j.config.Name, late.Sub(row.Time), j.config.PassLate)
		case !bytes.Equal(row.Key, nullKey):
			if !j.take(row, side, out) {
				return
			}
		case j.outer[side]:
			it := j.newRow(row, side)
			it.key = &joinKey{name: string(row.Key)}
			j.alone(it, out)
		}
	}
	j.showFirst(out)
}

// take matches a row with what is there of the other side and keeps it. It says
// false where the disk could not be read.
func (j *Join) take(row *Row, side int, out *Output) (ok bool) {
	if j.bounded() {
		if err := j.bringBack(row, 1-side); err != nil {
			out.Break(err)
			return false
		}
	}
	k := j.keys[string(row.Key)]
	var partners []*joinRow
	if k != nil {
		partners = j.partners(k, row.Time, side)
	}
	if err := j.fanOut(partners, row.Time); err != nil {
		out.Fail(*row, err)
		return true
	}
	if k == nil {
		k = &joinKey{name: string(row.Key)}
		j.keys[k.name] = k
	}
	it := j.newRow(row, side)
	it.key = k
	for _, partner := range partners {
		j.pair(it, partner, out)
	}
	if it.matches > 0 && j.config.halved() && side == LeftSide {
		return true // it has come out, or never will
	}
	it.segment = j.segments[side].at(j.segmentOf(it))
	j.enter(it)
	it.fresh = true
	j.touch(it)
	return true
}

// segmentOf is the end of the segment of a row.
func (j *Join) segmentOf(it *joinRow) watermark.Time {
	span := j.high - j.low
	if span < 0 { // it is beyond 64 bits
		span = math.MaxInt64
	}
	if j.outer[it.side] {
		return segmentEnd(it.time, max(span, j.config.Delay), orderedShare)
	}
	return segmentEnd(it.time, max(span, j.config.Delay), segmentShare)
}

// newRow copies what is kept of a row.
func (j *Join) newRow(row *Row, side int) *joinRow {
	j.payload = j.config.Codec.Encode(j.payload[:0], row.Message)
	return &joinRow{time: row.Time, arrival: row.Arrival, side: uint8(side), payload: string(j.payload)}
}

// fanOut says whether a row may join its partners.
func (j *Join) fanOut(partners []*joinRow, at watermark.Time) error {
	limit := j.config.MaxMatches
	if limit == 0 {
		return nil
	}
	if len(partners) > limit {
		return fmt.Errorf("max_matches: the row has %d partners, more than %d: %w; mend the key, narrow the interval or raise max_matches", len(partners), limit, ErrFanOut)
	}
	for _, p := range partners {
		if int(p.matches) >= limit {
			return fmt.Errorf("max_matches: the row at %s joins one at %s that has %d matches already: %w; mend the key, narrow the interval or raise max_matches", at, p.time, limit, ErrFanOut)
		}
	}
	return nil
}

// pair counts a match and hands it on. It is a row that arrives.
func (j *Join) pair(it, partner *joinRow, out *Output) {
	newly := partner.matches == 0
	for _, row := range [...]*joinRow{it, partner} {
		if j.counted[row.side] && (row.matches == 0 || j.config.MaxMatches > 0) {
			row.matches++
			if row != it {
				j.touch(row)
			}
		}
	}
	left, right := it, partner
	if it.side == RightSide {
		left, right = partner, it
	}
	switch {
	case j.config.Type == AntiJoin:
	case j.config.Type != SemiJoin:
		j.emit(left, right, max(left.time, right.time), out)
	case !left.shown && (left == it || newly):
		left.shown = true
		j.first = append(j.first, left)
	}
}

// showFirst has the left rows come out that a batch gave their first partner.
func (j *Join) showFirst(out *Output) {
	for i, left := range j.first {
		k := left.key
		partners := j.partners(k, left.time, LeftSide)
		j.emit(left, nil, max(left.time, partners[0].time), out)
		j.first[i] = nil
	}
	j.first = j.first[:0]
}

// emit hands on a pair, or a left row alone.
func (j *Join) emit(left, right *joinRow, at watermark.Time, out *Output) {
	j.result([2]*joinRow{LeftSide: left, RightSide: right}, left.key.name, at, out)
}

// alone hands on a row that has no partner.
func (j *Join) alone(it *joinRow, out *Output) {
	var pair [2]*joinRow
	pair[it.side] = it
	j.result(pair, it.key.name, it.time, out)
}

func (j *Join) result(pair [2]*joinRow, key string, at watermark.Time, out *Output) {
	res := &struct {
		Result
		sides [2]agg.Value
	}{Result: Result{Time: at, Timing: OnTime, Revision: 1}}
	res.Values = res.sides[:]
	j.rest = j.rest[:0]
	for side, it := range pair {
		j.rest = appendArrival(j.rest, it)
		if it != nil {
			res.sides[side] = agg.String(it.payload)
		}
	}
	j.group = append(j.group[:0], key...)
	j.key = j.identity.AppendRowKey(j.key[:0], j.group, j.rest)
	res.RowKey = string(j.key)
	out.Emit(&res.Result)
}

// Definition is what makes the stored state meaningful.
func (j *Join) Definition() []Setting {
	c := &j.config
	settings := []Setting{
		layout,
		{Field: "type", Value: JoinTypes[c.Type]},
		{Field: "lower", Value: c.Lower.String()}, {Field: "upper", Value: c.Upper.String()},
		{Field: "left.source", Value: c.Sides[LeftSide].Source}, {Field: "left.key", Value: c.Sides[LeftSide].Key},
		{Field: "right.source", Value: c.Sides[RightSide].Source}, {Field: "right.key", Value: c.Sides[RightSide].Key},
	}
	for _, bound := range []struct {
		name     string
		excluded bool
	}{{"lower_inclusive", c.ExcludeLower}, {"upper_inclusive", c.ExcludeUpper}} {
		if bound.excluded {
			settings = append(settings, Setting{Field: bound.name, Value: "false"})
		}
	}
	return settings
}
