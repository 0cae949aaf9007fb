package windowing

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/watermark"
)

func TestSegmentEnd(t *testing.T) {
	for _, test := range []struct {
		at   watermark.Time
		kept time.Duration
		want watermark.Time
	}{
		{0, 0, 0}, {7, 0, 7}, {7, 8, 7}, {7, 15, 7}, {7, 16, 7}, {6, 16, 7}, {8, 16, 9}, {8, 17, 9}, {8, 24, 11}, {-1, 16, -1}, {-2, 16, -1}, {-3, 16, -3},
		{0, 64, 7}, {watermark.Max, 64, watermark.EndOfTime}, {watermark.EndOfTime, 64, watermark.EndOfTime}, {watermark.Max - 8, 64, watermark.Max - 7},
		{watermark.Min, 64, watermark.Min + 6}, {0, math.MaxInt64, 1<<60 - 1}, {-1, math.MaxInt64, -1},
	} {
		require.Equal(t, test.want, segmentEnd(test.at, test.kept, 8), "%d kept for %d", test.at, test.kept)
	}
}

// TestSegmentEndHolds: a time is in its segment, and so are its neighbours up to the
// end.
func TestSegmentEndHolds(t *testing.T) {
	for _, kept := range []time.Duration{0, 1, 9, 100, time.Hour, math.MaxInt64} {
		for at := watermark.Time(-300); at < 300; at++ {
			end := segmentEnd(at, kept, 8)
			require.GreaterOrEqual(t, end, at)
			require.Equal(t, end, segmentEnd(end, kept, 8))
		}
	}
}
