package processors

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/connect-windowed/connect-windowed/processors/expr"
	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// errRowGap says that an expression gave no gap. The row is invalid.
var errRowGap = errors.New(`a gap is a duration above 0s as a text such as "90s", or a number of seconds`)

// sessionReader adds the gap of a row behind the arguments of its aggregates.
type sessionReader struct {
	reader
	gap  expr.Slot
	text string
	most time.Duration // 0: no bound
}

// compileSession makes the compiler of a session stage.
func compileSession(cfg windowing.SessionConfig) compiler {
	window := compileWindow(cfg.GroupBy, cfg.Aggregates)
	if cfg.GapExpr == "" {
		return window
	}
	return func(set *expr.Set) (reader, error) {
		rest, err := window(set)
		if err != nil {
			return nil, err
		}
		r := &sessionReader{reader: rest, text: cfg.GapExpr, most: cfg.MaxDuration}
		r.gap, err = set.Value(fieldGap, cfg.GapExpr)
		return r, err
	}
}

func (r *sessionReader) read(s *scratch, i int, row *windowing.Row) error {
	if err := r.reader.read(s, i, row); err != nil {
		return err
	}
	v, err := s.Get(i, r.gap)
	if err != nil {
		return err
	}
	gap, ok := gapOf(v)
	if !ok {
		return fmt.Errorf("gap: %.200s is %.60s: %w", r.text, v.AppendJSON(nil), errRowGap)
	}
	if r.most > 0 && gap > r.most {
		return fmt.Errorf("gap: %.200s is %s, which is more than max_duration %s: %w", r.text, gap, r.most, errRowGap)
	}
	args := s.room(len(row.Args) + 1)
	copy(args, row.Args)
	args[len(row.Args)] = agg.Int(int64(gap))
	row.Args = args
	return nil
}

// gapOf reads a gap: a text is a duration, a number counts seconds.
func gapOf(v agg.Value) (gap time.Duration, ok bool) {
	switch v.Kind() {
	case agg.KindString:
		gap, err := time.ParseDuration(v.AsString())
		return gap, err == nil && gap > 0
	case agg.KindInt:
		n := v.AsInt()
		return time.Duration(n) * time.Second, n > 0 && n <= math.MaxInt64/int64(time.Second)
	case agg.KindFloat:
		ns := math.Round(v.AsFloat() * float64(time.Second))
		return time.Duration(ns), ns >= 1 && ns < math.MaxInt64
	}
	return 0, false
}
