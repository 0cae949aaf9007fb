package windowing

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// TestJumpOfDecades: what lies between two events that are decades apart costs
// neither time nor memory, in every mode and on every grid.
func TestJumpOfDecades(t *testing.T) {
	const decades = watermark.Time(70 * 365 * 24 * time.Hour)
	steps, err := testSteps("1d", "1h", 0, "Europe/Paris")
	require.NoError(t, err)
	sliding, err := NewSliding(time.Minute, time.Second, 0)
	require.NoError(t, err)
	cumulative, err := NewCumulative(time.Hour, time.Second, 0)
	require.NoError(t, err)
	tumbling, err := NewTumbling(time.Second, 0)
	require.NoError(t, err)
	for name, grid := range map[string]Assigner{"tumbling": tumbling, "sliding": sliding, "cumulative": cumulative,
		"calendar": testCalendar(t, "1d", "1d", 0, "America/New_York"), "steps": steps} {
		for _, change := range []func(*WindowConfig){
			func(*WindowConfig) {},
			func(cfg *WindowConfig) { cfg.Lateness = time.Minute },
			func(cfg *WindowConfig) { cfg.Early = time.Second },
			func(cfg *WindowConfig) { cfg.Mode = Update },
			func(cfg *WindowConfig) { cfg.Fill, cfg.FillFor = FillZero, time.Minute },
			func(cfg *WindowConfig) { cfg.Mode, cfg.Fill, cfg.FillFor = Update, FillZero, time.Minute },
		} {
			cfg := testWindow(t).config
			cfg.Assigner = grid
			change(&cfg)
			w, out := NewWindow(cfg), &Output{}
			in := Instant{Late: watermark.Unset}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			for at := watermark.Time(1); at <= 1+decades; at += decades {
				w.Process(in, []Row{testRow(at, "a", 1)}, out)
				in.Close = at
				for !w.Advance(in, PartLimit, out) {
				}
				in.Late = at
			}
			require.Less(t, time.Since(start), time.Second, "%s", name)
			runtime.ReadMemStats(&after)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20), "%s: bytes", name)
			require.Less(t, w.Windows(), 3, "%s: the first has gone", name)
		}
	}
}
