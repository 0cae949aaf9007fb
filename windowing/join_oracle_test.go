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
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// joinInput is a row of a stream with the step that brings it.
type joinInput struct {
	Row
	side, step int
}

// joinOracle is what a join puts out by step, from all rows at once: it keeps no
// state, evicts nothing and knows nothing of arrival order.
func joinOracle(cfg JoinConfig, steps []operatorStep) [][]string {
	output := make([][]string, len(steps)+1)
	var rows []joinInput
	for i, s := range steps {
		for _, row := range s.rows {
			side := int(row.Args[0].AsInt())
			switch {
			case side == NeitherSide:
				output[i] = append(output[i], fmt.Sprintf("passed %v", row.Message))
			case row.Time < s.in.Late:
				output[i] = append(output[i], fmt.Sprintf("late %v by %d", row.Message, s.in.Late-row.Time))
			default:
				rows = append(rows, joinInput{Row: row, side: side, step: i})
			}
		}
	}
	for _, left := range rows {
		for _, right := range rows {
			if pairs(cfg, left, right) && (cfg.Type <= FullJoin) {
				at := max(left.step, right.step)
				output[at] = append(output[at], fmt.Sprintf("%v with %v at %d", left.Message, right.Message, max(left.Time, right.Time)))
			}
		}
	}
	for _, row := range rows {
		lonely(cfg, steps, rows, row, output)
	}
	for i := range output {
		slices.Sort(output[i])
	}
	return output
}

// pairs says whether two rows match.
func pairs(cfg JoinConfig, left, right joinInput) bool {
	d := time.Duration(right.Time - left.Time)
	return left.side == LeftSide && right.side == RightSide && bytes.Equal(left.Key, right.Key) && !bytes.Equal(left.Key, nullKey) &&
		(d > cfg.Lower || d == cfg.Lower && !cfg.ExcludeLower) && (d < cfg.Upper || d == cfg.Upper && !cfg.ExcludeUpper)
}

// lonely adds the lines of a row that comes out on its own.
func lonely(cfg JoinConfig, steps []operatorStep, rows []joinInput, row joinInput, output [][]string) {
	var partners []joinInput
	for _, other := range rows {
		if pairs(cfg, row, other) || pairs(cfg, other, row) {
			partners = append(partners, other)
		}
	}
	if cfg.Type == SemiJoin && row.side == LeftSide && len(partners) > 0 {
		at := len(steps)
		for _, p := range partners {
			at = min(at, max(p.step, row.step))
		}
		first := watermark.Max
		for _, p := range partners {
			if p.step <= at {
				first = min(first, p.Time)
			}
		}
		output[at] = append(output[at], fmt.Sprintf("%v with nothing at %d", row.Message, max(row.Time, first)))
	}
	outer := row.side == LeftSide && (cfg.Type == LeftJoin || cfg.Type == FullJoin || cfg.Type == AntiJoin) ||
		row.side == RightSide && (cfg.Type == RightJoin || cfg.Type == FullJoin)
	if !outer || len(partners) > 0 {
		return
	}
	wait := watermark.Time(cfg.Upper)
	if row.side == RightSide {
		wait = -watermark.Time(cfg.Lower)
	}
	at := row.step
	if !bytes.Equal(row.Key, nullKey) {
		for at < len(steps) && (steps[at].in.Close == watermark.Unset || row.Time+wait >= steps[at].in.Close) {
			at++
		}
	}
	text := fmt.Sprintf("%v with nothing at %d", row.Message, row.Time)
	if row.side == RightSide {
		text = fmt.Sprintf("nothing with %v at %d", row.Message, row.Time)
	}
	output[at] = append(output[at], text)
}

// joinLines describes what an output holds, in the words of the oracle.
func joinLines(out *Output) (text []string) {
	name := func(v agg.Value) string {
		if v.IsNull() {
			return "nothing"
		}
		return v.AsString()
	}
	for _, it := range out.items {
		switch {
		case it.result != nil:
			text = append(text, fmt.Sprintf("%s with %s at %d", name(it.result.Values[0]), name(it.result.Values[1]), it.result.Time))
		case it.row.Flag == Late:
			text = append(text, fmt.Sprintf("late %v by %d", it.row.Message, it.row.Mark.LateBy))
		default:
			text = append(text, fmt.Sprintf("passed %v", it.row.Message))
		}
	}
	return text
}

func randomJoin(r *rand.Rand) JoinConfig {
	for {
		cfg := JoinConfig{Name: "j", Type: JoinType(r.IntN(len(JoinTypes))), Lower: time.Duration(r.IntN(50) - 25), Upper: time.Duration(r.IntN(50) - 25),
			ExcludeLower: r.IntN(4) == 0, ExcludeUpper: r.IntN(4) == 0, PassLate: true, Codec: textCodec{}}
		if !cfg.Empty() {
			return cfg
		}
	}
}

// TestJoinsAgainstOracle: every type, symmetric and asymmetric bounds, before and
// behind: same rows, same step, any restarts and parts, any order in a batch.
func TestJoinsAgainstOracle(t *testing.T) {
	seed := newSeed(t)
	for i := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, i))
		cfg := randomJoin(r)
		keys := 1 + r.IntN(4)
		steps := randomSteps(r, func(row *Row) {
			row.Key, row.Args = randomKey(r, keys), []agg.Value{agg.Int(int64(r.IntN(20)/9) * 1)}
			if row.Args[0].AsInt() > RightSide {
				row.Args[0] = agg.Int(NeitherSide)
			}
		})
		want := joinOracle(cfg, steps)
		cfg.Delay = time.Duration(r.IntN(200))
		c := &operatorChaos{t: t, r: r, bound: int64(r.IntN(2) * (1 + r.IntN(1000))), lines: joinLines, hold: cfg.Hold(), fresh: func() Operator { return NewJoin(cfg) }}
		require.Equal(t, want, c.run(steps), "stream %d of seed %d: %+v", i, seed, cfg)
		number := int64(0)
		for _, s := range steps {
			r.Shuffle(len(s.rows), func(i, j int) { s.rows[i], s.rows[j] = s.rows[j], s.rows[i] })
			for j := range s.rows {
				number++
				s.rows[j].Arrival = number
			}
		}
		require.Equal(t, want, c.run(steps), "shuffled stream %d of seed %d: %+v", i, seed, cfg)
	}
}
