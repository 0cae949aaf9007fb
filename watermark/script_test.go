package watermark

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the expectations in testdata/*.script")

// TestScripts runs testdata/*.script: a line is a step, lines that start with > are what
// it prints.
//
//	source [name] [delay=5s] [idle=30s] [partitions=p0,p1] [count=2]
//	                 once per source; one more later counts from the next restart on
//	config [policy=max] [grace=3s] [idle_advance]
//	windows 10s      count the rows of tumbling windows
//	restarts         the script holds with a restart after every step, too
//	batch [source/]partition@time ...
//	tick 10s         time passes, with a Tick
//	wait 10s         time passes
//	wall 8h          the wall clock alone is stepped
//	backlog on|off   from the next step on
//	end              the input ends by itself, with a Tick
//	flush            W is EndOfTime for the windows, and only for them
//	restart
//	deadline, holder
//
// Times are seconds since 1970 or RFC 3339; W is printed as the last row was written.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.script")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".script"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			got := runScript(t, string(text), false)
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
				return
			}
			require.Equal(t, string(text), got, "go test -run TestScripts -update rewrites it")
			if strings.Contains(string(text), "\nrestarts\n") {
				require.Equal(t, string(text), runScript(t, string(text), true), "with a restart after every step")
			}
		})
	}
}

// runScript runs the steps of text and returns it with what they print.
func runScript(t *testing.T, text string, restarts bool) string {
	r := &runner{t: t, config: Config{StartupGrace: -1}, counts: map[Time]map[string]int{}}
	r.now = Clock{Wall: 1_700_000_000 * Time(time.Second), Mono: time.Hour}
	var out strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, ">") {
			continue
		}
		out.WriteString(line + "\n")
		step, _, _ := strings.Cut(line, "#")
		fields := strings.Fields(step)
		if len(fields) == 0 {
			continue
		}
		for _, printed := range r.step(fields[0], fields[1:]) {
			out.WriteString("> " + printed + "\n")
		}
		if restarts && r.f != nil {
			r.restart()
		}
	}
	return out.String()
}

// runner is the state of a script: a Frontier and tumbling windows below it.
type runner struct {
	t       *testing.T
	config  Config
	f       *Frontier
	now     Clock
	size    time.Duration
	counts  map[Time]map[string]int // by window start and partition
	rfc3339 bool
}

func (r *runner) step(name string, args []string) []string {
	switch name {
	case "source":
		r.config.Sources = append(r.config.Sources, r.source(args))
		return nil
	case "config":
		r.configure(args)
		return nil
	case "windows":
		r.size = r.duration(args[0])
		return nil
	case "restarts":
		return nil
	}
	if r.f == nil {
		r.f = NewFrontier(r.config, r.now)
	}
	switch name {
	case "batch":
		return r.batch(args)
	case "tick", "wait":
		r.now.Mono += r.duration(args[0])
		r.now.Wall = r.now.Wall.Add(r.duration(args[0]))
		if name == "tick" {
			return r.judge(r.f.Tick(r.now))
		}
	case "wall":
		r.now.Wall = r.now.Wall.Add(r.duration(args[0]))
	case "backlog":
		r.now.Backlog = args[0] == "on"
	case "end":
		r.f.EndInput()
		return r.judge(r.f.Tick(r.now))
	case "flush":
		return r.closing(EndOfTime)
	case "restart":
		r.restart()
	case "deadline":
		at, ok := r.f.Deadline()
		if !ok {
			return []string{"none"}
		}
		return []string{"in " + (at - r.now.Mono).String()}
	case "holder":
		h, ok := r.f.Holder(r.now)
		if !ok {
			return []string{"none"}
		}
		return []string{fmt.Sprintf("source %q partition %q for %s, spoken %v, missing %d",
			h.Source, h.Partition, h.For, h.Spoken, h.Missing)}
	default:
		require.Fail(r.t, "unknown step", name)
	}
	return nil
}

func (r *runner) source(args []string) (s SourceConfig) {
	for _, arg := range args {
		key, value, found := strings.Cut(arg, "=")
		switch {
		case !found:
			s.Name = key
		case key == "delay":
			s.Delay = r.duration(value)
		case key == "idle":
			s.IdleTimeout = r.duration(value)
		case key == "partitions":
			s.Partitions = strings.Split(value, ",")
		case key == "count":
			s.PartitionCount = int(r.number(value))
		default:
			require.Fail(r.t, "unknown source setting", key)
		}
	}
	return s
}

func (r *runner) configure(args []string) {
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		var err error
		switch key {
		case "policy":
			r.config.Policy, err = ParsePolicy(value)
		case "grace":
			r.config.StartupGrace = r.duration(value)
		case "idle_advance":
			r.config.IdleAdvance = true
		default:
			require.Fail(r.t, "unknown setting", key)
		}
		require.NoError(r.t, err)
	}
}

// batch judges rows as a tumbling window does: late by W before, closing by W after.
func (r *runner) batch(rows []string) (out []string) {
	late := r.f.Watermark()
	for _, row := range rows {
		where, when, _ := strings.Cut(row, "@")
		sourceName, partition, found := strings.Cut(where, "/")
		if !found {
			sourceName, partition = "", where
		}
		index := slices.IndexFunc(r.config.Sources, func(s SourceConfig) bool { return s.Name == sourceName })
		require.GreaterOrEqual(r.t, index, 0, "source of %s", row)
		at := r.time(when)
		r.f.Observe(index, partition, at)
		if r.size == 0 {
			continue
		}
		start := at.Floor(r.size, 0)
		if start.Add(r.size) <= late {
			out = append(out, "late row "+row)
			continue
		}
		if r.counts[start] == nil {
			r.counts[start] = map[string]int{}
		}
		r.counts[start][where]++
	}
	before, after := r.f.Advance(r.now)
	require.Equal(r.t, late, before)
	return append(out, r.judge(before, after)...)
}

// judge prints the pair and closes windows.
func (r *runner) judge(late, close Time) []string {
	require.LessOrEqual(r.t, late, close)
	require.Equal(r.t, close, r.f.Watermark())
	out := []string{fmt.Sprintf("late %s close %s", r.text(late), r.text(close))}
	return append(out, r.closing(close)...)
}

func (r *runner) closing(w Time) (out []string) {
	var starts []Time
	for start := range r.counts {
		if start.Add(r.size) <= w {
			starts = append(starts, start)
		}
	}
	slices.Sort(starts)
	for _, start := range starts {
		var counts []string
		for where, n := range r.counts[start] {
			counts = append(counts, fmt.Sprintf(" %s:%d", where, n))
		}
		sort.Strings(counts)
		out = append(out, fmt.Sprintf("[%s,%s)%s", r.text(start), r.text(start.Add(r.size)), strings.Join(counts, "")))
		delete(r.counts, start)
	}
	return out
}

func (r *runner) restart() {
	state := r.f.AppendState(nil)
	f := NewFrontier(r.config, r.now)
	require.NoError(r.t, f.Restore(state, r.now))
	require.Equal(r.t, state, f.AppendState(nil))
	require.Equal(r.t, r.f.Watermark(), f.Watermark())
	r.f = f
}

func (r *runner) time(s string) Time {
	r.rfc3339 = strings.Contains(s, "T")
	var at Time
	var err error
	if r.rfc3339 {
		at, err = ParseRFC3339(s)
	} else {
		at, err = Second.FromDecimal(s)
	}
	require.NoError(r.t, err)
	return at
}

func (r *runner) text(t Time) string {
	if r.rfc3339 || t == Unset || t == EndOfTime {
		return t.String()
	}
	sign, abs := "", int64(t)
	if abs < 0 {
		sign, abs = "-", -abs
	}
	s := fmt.Sprintf("%s%d.%09d", sign, abs/int64(time.Second), abs%int64(time.Second))
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

func (r *runner) duration(s string) time.Duration {
	d, err := time.ParseDuration(s)
	require.NoError(r.t, err)
	return d
}

func (r *runner) number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	require.NoError(r.t, err)
	return n
}
