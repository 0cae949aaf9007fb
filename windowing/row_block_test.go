package windowing

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// TestManyGroups: rows by block and one by one give the same, with late and invalid
// rows among them, over several windows and batches of any size.
func TestManyGroups(t *testing.T) {
	seed := newSeed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	type sum struct{ rows, total int64 }
	want := map[string]*sum{}
	w, out := testWindow(t), &Output{}
	in := Instant{Late: 10, Close: 10}
	late, invalid := 0, 0
	for w.Groups() < 3*manyGroups {
		rows := make([]Row, 1+r.IntN(3*blockRows))
		for i := range rows {
			at, key, v := watermark.Time(r.IntN(40)), fmt.Sprint(r.IntN(2*manyGroups)), int64(r.IntN(100))
			rows[i] = testRow(at, key, v)
			switch {
			case r.IntN(20) == 0:
				rows[i].Flag = Invalid
				invalid++
				continue
			case at < 10:
				late++
				continue
			}
			name := fmt.Sprint(at/10, key)
			if want[name] == nil {
				want[name] = &sum{}
			}
			want[name].rows++
			want[name].total += v
		}
		w.Process(in, rows, out)
	}
	require.Equal(t, int64(late), out.tally.Late)
	require.Len(t, lines(out), late*boolInt(w.config.PassLate)+invalid)
	in.Close = 40
	require.True(t, w.Advance(in, 10*manyGroups, out))
	require.Len(t, out.items, len(want))
	for _, it := range out.items {
		key, _, err := agg.DecodeKey(it.result.Key)
		require.NoError(t, err)
		s := want[fmt.Sprint(it.result.Start/10, key.AsString())]
		require.NotNil(t, s)
		require.Equal(t, []agg.Value{agg.Int(s.rows), agg.Int(s.total)}, it.result.Values)
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
