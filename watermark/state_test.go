package watermark

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var twoSources = Config{Sources: []SourceConfig{{Name: "A"}, {Name: "B"}}}

// spokenFrontier has partitions of two sources and a watermark.
func spokenFrontier() *Frontier {
	f := NewFrontier(twoSources, Clock{})
	f.Observe(0, "", -5)
	f.Observe(1, "orders/0", Max)
	f.Observe(1, "", Min)
	f.Observe(1, strings.Repeat("x", 300), 7)
	f.Advance(Clock{})
	f.EndInput()
	f.Tick(Clock{})
	return f
}

func TestStateRoundTrip(t *testing.T) {
	for name, f := range map[string]*Frontier{
		"fresh":  NewFrontier(twoSources, Clock{}),
		"spoken": spokenFrontier(),
	} {
		state := f.AppendState([]byte("before"))[len("before"):]
		next := NewFrontier(twoSources, Clock{})
		require.NoError(t, next.Restore(state, Clock{}), name)
		require.Equal(t, state, next.AppendState(nil), name)
		require.Equal(t, f.Watermark(), next.Watermark(), name)
	}
}

// The bytes are a promise to files that exist.
func TestStateLayout(t *testing.T) {
	f := NewFrontier(Config{Sources: []SourceConfig{{Name: "A"}}}, Clock{})
	f.Observe(0, "p", 258)
	f.EndInput()
	f.Advance(Clock{})
	require.Equal(t, "\x01"+"\x00\x00\x00\x00\x00\x00\x01\x02"+"\x01"+"\x01A"+"\x01"+"\x01p"+"\x00\x00\x00\x00\x00\x00\x01\x02",
		string(f.AppendState(nil)))
	records := map[string]string{}
	f.WriteChanges(func(key, value []byte) { records[string(key)] = string(value) })
	require.Equal(t, map[string]string{
		"w":       "\x01\x00\x00\x00\x00\x00\x00\x01\x02",
		"p\x01Ap": "\x01\x00\x00\x00\x00\x00\x00\x01\x02",
	}, records)
}

func TestRestoreRefusesDamage(t *testing.T) {
	state := spokenFrontier().AppendState(nil)
	refuse := func(b []byte, what string, args ...any) {
		t.Helper()
		f := NewFrontier(twoSources, Clock{})
		require.ErrorIs(t, f.Restore(b, Clock{}), ErrState, what, args)
		require.Equal(t, NewFrontier(twoSources, Clock{}), f, "a refused state leaves no trace")
	}
	for n := range state {
		refuse(state[:n], "cut to %d", n)
	}
	refuse(append(state[:len(state):len(state)], 0), "a byte left over")
	for _, v := range []byte{0, 2, 255} {
		refuse(append([]byte{v}, state[1:]...), "version %d", v)
	}
	source := func(name string, partitions ...string) string {
		s := string(rune(len(name))) + name + string(rune(len(partitions)))
		for _, p := range partitions {
			s += string(rune(len(p))) + p + strings.Repeat("\x00", 8)
		}
		return s
	}
	const head = "\x01" + "\x00\x00\x00\x00\x00\x00\x00\x00"
	require.NoError(t, NewFrontier(twoSources, Clock{}).Restore([]byte(head+"\x02"+source("A", "p", "q")+source("B", "p")), Clock{}))
	for what, b := range map[string]string{
		"a source twice":           head + "\x02" + source("A", "p") + source("A", "q"),
		"a partition twice":        head + "\x01" + source("A", "p", "p"),
		"a source without any":     head + "\x01" + source("A"),
		"W at the end of time":     "\x01\x7f" + strings.Repeat("\xff", 7) + "\x00",
		"a partition that is none": head + "\x01\x01A\x01\x01p\x80" + strings.Repeat("\x00", 7),
		"a huge count":             head + strings.Repeat("\xff", 9) + "\x01",
		"a long count":             head + strings.Repeat("\xff", 20),
		"a count with a zero":      head + "\x81\x00" + source("A", "p"),
		"a huge text":              head + "\x01" + strings.Repeat("\xff", 8) + "\x7fA",
	} {
		refuse([]byte(b), what)
	}
}

func TestRestoreRefusesAFrontierInUse(t *testing.T) {
	f := spokenFrontier()
	state := f.AppendState(nil)
	require.ErrorIs(t, f.Restore(state, Clock{}), ErrState)
	observed := NewFrontier(twoSources, Clock{})
	observed.Observe(0, "", 1)
	require.ErrorIs(t, observed.Restore(state, Clock{}), ErrState)
}

// A larger delay does not take W back; a source that is gone does not hold it.
func TestRestoreUnderAnotherConfig(t *testing.T) {
	f := NewFrontier(twoSources, Clock{})
	f.Observe(0, "", 100)
	f.Observe(1, "", 50)
	f.Advance(Clock{})
	require.Equal(t, Time(50), f.Watermark())
	state := f.AppendState(nil)

	next := NewFrontier(Config{Sources: []SourceConfig{{Name: "A", Delay: 80, IdleTimeout: time.Second}}}, Clock{})
	require.NoError(t, next.Restore(state, Clock{}))
	require.Equal(t, Time(50), next.Watermark())
	next.Observe(0, "", 129)
	late, close := next.Advance(Clock{})
	require.Equal(t, [2]Time{50, 50}, [2]Time{late, close})
	next.Observe(0, "", 135)
	_, close = next.Advance(Clock{})
	require.Equal(t, Time(55), close)
}

func TestWriteChangesWritesWhatChanged(t *testing.T) {
	f := NewFrontier(Config{Sources: []SourceConfig{{}}, StartupGrace: -1}, Clock{})
	changed := func() (n int) {
		f.WriteChanges(func(key, value []byte) { n++ })
		return n
	}
	require.Zero(t, changed())
	for i := range 100 {
		f.Observe(0, fmt.Sprint(i), Time(i))
	}
	f.Advance(Clock{})
	require.Equal(t, 100, changed(), "W is unset for the grace")
	require.Zero(t, changed())
	f.EndInput()
	f.Tick(Clock{})
	require.Equal(t, 1, changed(), "W alone")
	f.Observe(0, "7", 1000)
	f.Observe(0, "8", 3)
	f.Advance(Clock{})
	require.Equal(t, 1, changed(), "8 has not grown")
	f.Observe(0, "0", 1000)
	f.Advance(Clock{})
	require.Equal(t, 2, changed())

	restored := NewFrontier(Config{Sources: []SourceConfig{{}}}, Clock{})
	require.NoError(t, restored.Restore(f.AppendState(nil), Clock{}))
	f = restored
	require.Equal(t, 101, changed(), "a whole state that becomes records is written in full")
}

func TestRestoreRecordRefusesDamage(t *testing.T) {
	const value = "\x01\x00\x00\x00\x00\x00\x00\x01\x02"
	for _, c := range [][2]string{
		{"", value}, {"x", value}, {"ww", value}, {"p", value}, {"p\x02A", value}, {"p\xff", value},
		{"w", ""}, {"w", value[:8]}, {"w", value + "\x00"}, {"w", "\x02" + value[1:]}, {"w", "\x01\x7f" + strings.Repeat("\xff", 7)},
		{"p\x01Ap", value[:8]}, {"p\x01Ap", "\x01\x80" + strings.Repeat("\x00", 7)},
	} {
		f := NewFrontier(twoSources, Clock{})
		require.ErrorIs(t, f.RestoreRecord([]byte(c[0]), []byte(c[1])), ErrState, "%q", c)
		require.Equal(t, NewFrontier(twoSources, Clock{}), f)
	}
}

// Any bytes are refused, or are exactly what AppendState writes.
func FuzzRestore(f *testing.F) {
	f.Add(NewFrontier(twoSources, Clock{}).AppendState(nil))
	f.Add(spokenFrontier().AppendState(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := decodeState(b); err != nil {
			require.ErrorIs(t, err, ErrState)
			return
		}
		st, _ := decodeState(b)
		var cfg Config
		for _, s := range st.sources {
			cfg.Sources = append(cfg.Sources, SourceConfig{Name: s.name})
		}
		if len(cfg.Sources) == 0 {
			cfg = twoSources
		}
		next := NewFrontier(cfg, Clock{})
		require.NoError(t, next.Restore(b, Clock{}))
		require.Equal(t, b, next.AppendState(nil))
		next.Observe(0, "p", 1)
		late, close := next.Advance(Clock{})
		require.Equal(t, st.w, late)
		require.GreaterOrEqual(t, close, late)
	})
}

func FuzzRestoreRecord(f *testing.F) {
	spokenFrontier().WriteChanges(func(key, value []byte) { f.Add(key, value) })
	f.Fuzz(func(t *testing.T, key, value []byte) {
		next := NewFrontier(twoSources, Clock{})
		if err := next.RestoreRecord(key, value); err != nil {
			require.ErrorIs(t, err, ErrState)
		}
	})
}
