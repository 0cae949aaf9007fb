package windowing

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// remembered is a key of the oracle: the rows that came while it was known.
type remembered struct {
	key  []byte
	rows []Row
}

// dedupeOracle is what a deduplication puts out by step. It looks at all keys at
// the end of every step.
func dedupeOracle(cfg DedupeConfig, steps []operatorStep) (output [][]string) {
	var known []*remembered
	end := operatorStep{in: Instant{Close: watermark.EndOfTime}}
	for _, s := range append(slices.Clone(steps), end) {
		var text []string
		for _, row := range s.rows {
			switch {
			case row.Time < s.in.Late:
				text = append(text, fmt.Sprintf("late %v by %d", row.Message, s.in.Late-row.Time))
			case bytes.Equal(row.Key, nullKey):
				text = append(text, fmt.Sprintf("%v at %d", row.Message, row.Time))
			default:
				at := slices.IndexFunc(known, func(k *remembered) bool {
					return bytes.Equal(k.key, row.Key) && (!cfg.WithEventTime || k.rows[0].Time == row.Time)
				})
				if at < 0 {
					known = append(known, &remembered{key: row.Key, rows: []Row{row}})
					if !cfg.KeepLast {
						text = append(text, fmt.Sprintf("%v at %d", row.Message, row.Time))
					}
					continue
				}
				k := known[at]
				loser := row
				if cfg.KeepLast {
					if best := k.best(); row.Time >= best.Time {
						loser = best
					}
				}
				k.rows = append(k.rows, row)
				text = append(text, fmt.Sprintf("duplicate %v", loser.Message))
			}
		}
		known = slices.DeleteFunc(known, func(k *remembered) bool {
			first := k.rows[0].Time
			goes := first+watermark.Time(cfg.Within) <= s.in.Close
			if cfg.WithEventTime {
				goes = first < s.in.Close
			}
			if goes && cfg.KeepLast {
				text = append(text, fmt.Sprintf("%v at %d", k.best().Message, k.best().Time))
			}
			return goes
		})
		slices.Sort(text)
		output = append(output, text)
	}
	return output
}

// best is the row with the largest event time, of several the last to arrive.
func (k *remembered) best() (best Row) {
	best = k.rows[0]
	for _, row := range k.rows {
		if row.Time >= best.Time {
			best = row
		}
	}
	return best
}

func dedupeLines(out *Output) (text []string) {
	for _, it := range out.items {
		switch {
		case it.result != nil:
			text = append(text, fmt.Sprintf("%v at %d", it.result.Message, it.result.Time))
		case it.row.Flag == Late:
			text = append(text, fmt.Sprintf("late %v by %d", it.row.Message, it.row.Mark.LateBy))
		case it.row.Flag == Duplicate:
			text = append(text, fmt.Sprintf("duplicate %v", it.row.Message))
		default:
			text = append(text, fmt.Sprintf("%v at %d", it.row.Message, it.row.Time))
		}
	}
	return text
}

// TestDedupesAgainstOracle: every mode: same rows, same step, any restarts and
// parts.
func TestDedupesAgainstOracle(t *testing.T) {
	seed := newSeed(t)
	for i := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, i))
		cfg := DedupeConfig{Name: "d", Delay: time.Duration(r.IntN(200)), Within: time.Duration(r.IntN(50)), WithEventTime: r.IntN(3) == 0, KeepLast: r.IntN(2) == 0,
			PassDuplicates: true, PassLate: true, Codec: textCodec{}}
		keys := 1 + r.IntN(6)
		steps := randomSteps(r, func(row *Row) { row.Key = randomKey(r, keys) })
		c := &operatorChaos{t: t, r: r, bound: int64(r.IntN(2) * (1 + r.IntN(1000))), lines: dedupeLines, hold: cfg.Hold(), fresh: func() Operator { return NewDedupe(cfg) }}
		want := dedupeOracle(cfg, steps)
		require.Equal(t, len(want), len(steps)+1)
		require.Equal(t, want, c.run(steps), "stream %d of seed %d: %+v", i, seed, cfg)
	}
}
