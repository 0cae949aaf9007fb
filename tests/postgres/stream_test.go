package postgres

import (
	"cmp"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/life"
)

// event is a message of a stream: key k has value v at ts (ms).
type event struct {
	ts int64
	k  string
	v  int64
}

// Every event is less than the delay behind the newest one before it, so that none
// is late, whatever happens.
const (
	delay  = 20_000 // ms
	window = 10_000 // ms
	gap    = 3_000  // ms, of sessions
	start  = 1_760_000_000_000
)

func events(rnd *rand.Rand, n int) []event {
	all := make([]event, n)
	newest := int64(start)
	for i := range all {
		newest += rnd.Int64N(200)
		all[i] = event{newest - rnd.Int64N(delay), fmt.Sprintf("k%d", rnd.IntN(7)), rnd.Int64N(1000)}
	}
	return all
}

func write(t testing.TB, path string, all []event) {
	t.Helper()
	var text strings.Builder
	for _, e := range all {
		fmt.Fprintf(&text, "{\"ts\":%d,\"k\":%q,\"v\":%d}\n", e.ts, e.k, e.v)
	}
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
}

// row is what a table must have in the end: a window of a key.
type row struct {
	k          string
	start, end int64 // ms
	n, total   int64
}

func (r row) String() string {
	return fmt.Sprintf("%s|%d|%d|%d|%d", r.k, r.start, r.end, r.n, r.total)
}

// tumbling is the answer to the stream for windows.
func tumbling(all []event) []row {
	found := map[string]*row{}
	for _, e := range all {
		at := e.ts - e.ts%window
		id := e.k + strconv.FormatInt(at, 10)
		if found[id] == nil {
			found[id] = &row{k: e.k, start: at, end: at + window}
		}
		found[id].n++
		found[id].total += e.v
	}
	var rows []row
	for _, r := range found {
		rows = append(rows, *r)
	}
	return rows
}

// sessions is the answer to the stream for sessions.
func sessions(all []event) (rows []row) {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b event) int { return cmp.Or(cmp.Compare(a.k, b.k), cmp.Compare(a.ts, b.ts)) })
	for _, e := range all {
		if last := len(rows) - 1; last >= 0 && rows[last].k == e.k && e.ts <= rows[last].end {
			rows[last].n, rows[last].total, rows[last].end = rows[last].n+1, rows[last].total+e.v, e.ts+gap
			continue
		}
		rows = append(rows, row{e.k, e.ts, e.ts + gap, 1, e.v})
	}
	return rows
}

func sorted(rows []row) (lines []string) {
	for _, r := range rows {
		lines = append(lines, r.String())
	}
	slices.Sort(lines)
	return lines
}

// sink is where rows are written to.
type sink struct {
	driver, dsn string
	read        *sql.DB
	time        string // the type of a column
}

// table creates an empty one. A row that was taken back stays as a tombstone, so
// that no older revision brings it back.
func (s *sink) table(t testing.TB, name string) {
	t.Helper()
	for _, text := range []string{
		"DROP TABLE IF EXISTS " + name,
		"CREATE TABLE " + name + " (row_key TEXT PRIMARY KEY, revision BIGINT NOT NULL, gone BOOLEAN NOT NULL, k TEXT, " +
			"window_start " + s.time + ", window_end " + s.time + ", n BIGINT, total BIGINT)",
	} {
		_, err := s.read.Exec(text)
		require.NoError(t, err)
	}
}

// content is what the table holds.
func (s *sink) content(t testing.TB, name string) (lines []string) {
	t.Helper()
	ms := "(extract(epoch from %s) * 1000)::bigint"
	if s.driver == "sqlite" {
		ms = "cast(round((julianday(%s) - 2440587.5) * 86400000) as integer)"
	}
	found, err := s.read.Query("SELECT k, " + fmt.Sprintf(ms, "window_start") + ", " + fmt.Sprintf(ms, "window_end") + ", n, total FROM " + name + " WHERE NOT gone")
	require.NoError(t, err)
	defer found.Close()
	var rows []row
	for found.Next() {
		var r row
		require.NoError(t, found.Scan(&r.k, &r.start, &r.end, &r.n, &r.total))
		rows = append(rows, r)
	}
	require.NoError(t, found.Err())
	return sorted(rows)
}

// job is a pipeline that writes a stream to a table.
type job struct {
	*sink
	dir, table string
	operator   string
	onEnd      string
	parallel   int
}

const (
	appended        = "tumbling_window: { size: 10s, group_by: { k: this.k }, aggregates: { n: count(), total: sum(this.v) } }"
	updated         = "tumbling_window: { size: 10s, output_mode: update, group_by: { k: this.k }, aggregates: { n: count(), total: sum(this.v) } }"
	sessionsUpdated = "session_window: { gap: 3s, output_mode: update, group_by: { k: this.k }, aggregates: { n: count(), total: sum(this.v) } }"
	sessionsOnce    = "session_window: { gap: 3s, group_by: { k: this.k }, aggregates: { n: count(), total: sum(this.v) } }"
)

func (j *job) config() string {
	return fmt.Sprintf(`
input:
  windowed:
    state: state
    on_end: %s
    position: ordinal
    input:
      file: { paths: [ %q ], scanner: { lines_batch: { max_batch_size: 8 } } }
    processors:
      - watermark: { event_time: this.ts, unit: ms, delay: 20s }
      - %s
output:
  sql_insert:
    driver: %s
    dsn: %q
    max_in_flight: %d
    table: %s
    columns: [ row_key, revision, gone, k, window_start, window_end, n, total ]
    args_mapping: root = [ @windowed_row_key, @windowed_revision, @windowed_timing == "delete", this.k, this.window_start, this.window_end, this.n, this.total ]
    suffix: |
      ON CONFLICT (row_key) DO UPDATE SET
        revision = excluded.revision, gone = excluded.gone, n = excluded.n, total = excluded.total
      WHERE excluded.revision > %[7]s.revision
cache_resources:
  - label: state
    bbolt: { path: %q }
http: { enabled: false }
logger: { level: INFO, format: logfmt }
shutdown_timeout: 20s
`, j.onEnd, filepath.Join(j.dir, "events.ndjson"), j.operator, j.driver, j.dsn, j.parallel, j.table, filepath.Join(j.dir, j.table+".state.db"))
}

// example is a configuration with a folder for what outlives the process.
type example struct {
	dir, config string
	env         []string
}

func (j *job) start(t testing.TB) *process {
	return (&example{dir: j.dir, config: j.config()}).start(t)
}

// process is a life of the binary.
type process struct{ *life.Process }

func (e *example) start(t testing.TB) *process {
	t.Helper()
	cmd := exec.Command(binary, "run", life.Config(t, e.dir, e.config))
	cmd.Env = append(os.Environ(), e.env...)
	return &process{life.Start(t, cmd)}
}

// kill kills the process after a time, unless it has ended by then.
func (p *process) kill(after time.Duration) {
	select {
	case <-time.After(after):
		p.Kill()
	case <-p.Exited:
	}
}

// killed is kill, and says whether it came in time.
func (p *process) killed(t testing.TB, after time.Duration) bool {
	t.Helper()
	p.kill(after)
	if p.Cmd.ProcessState.ExitCode() == -1 {
		return true
	}
	p.succeeded(t)
	return false
}

// ended waits for the end by itself.
func (p *process) ended(t testing.TB) {
	t.Helper()
	p.Wait(t, 2*time.Minute)
	p.succeeded(t)
}

func (p *process) succeeded(t testing.TB) {
	t.Helper()
	require.Zero(t, p.Cmd.ProcessState.ExitCode(), "exit status\n%s", p.Log.String())
}

// modes are the pipelines that end with the same answer.
var modes = []struct {
	name, operator, onEnd string
	answer                func([]event) []row
	rows                  int // for a run of some seconds
}{
	{"appended", appended, "flush", tumbling, 120_000},
	{"updated", updated, "keep", tumbling, 30_000},
	{"sessions_appended", sessionsOnce, "flush", sessions, 120_000},
	{"sessions_updated", sessionsUpdated, "keep", sessions, 30_000},
}

// killedAtRandom runs every mode again and again, killed at random moments, every
// other time just after something was written, until each was killed as often as
// wanted and ended by itself.
func killedAtRandom(t *testing.T, s *sink, kills, parallel int) {
	base := life.Seed(t)
	for _, mode := range modes {
		killed, halfway := 0, 0
		starting := 120 * time.Millisecond // about what a life takes to begin to write
		for round := uint64(0); killed < kills; round++ {
			rnd := rand.New(rand.NewPCG(base, round))
			stream := events(rnd, 4000)
			j := &job{sink: s, dir: t.TempDir(), table: mode.name, operator: mode.operator, onEnd: mode.onEnd, parallel: parallel}
			write(t, filepath.Join(j.dir, "events.ndjson"), stream)
			s.table(t, j.table)
			want := sorted(mode.answer(stream))
			for {
				p, after := j.start(t), time.Duration(rnd.ExpFloat64()*float64(60*time.Millisecond))
				if killed%2 == 0 {
					s.moves(t, p, j.table)
					after /= 10
				} else {
					after += starting
				}
				if !p.killed(t, after) {
					starting = starting * 3 / 4 // a faster machine than that
					break
				}
				if content := s.content(t, j.table); len(content) > 0 && !slices.Equal(content, want) {
					halfway++
				}
				if killed++; killed >= kills {
					j.start(t).ended(t)
					break
				}
			}
			require.Equal(t, want, s.content(t, j.table), "%s, seed %d, round %d", mode.name, base, round)
		}
		t.Logf("%s: %d kills, %d of them halfway", mode.name, killed, halfway)
		require.Positive(t, halfway)
	}
}

// moves waits until the table has changed, or the process has ended.
func (s *sink) moves(t testing.TB, p *process, table string) {
	t.Helper()
	state := func() (sum sql.NullInt64) {
		require.NoError(t, s.read.QueryRow("SELECT sum(revision) FROM "+table).Scan(&sum))
		return sum
	}
	for before := state(); state() == before; {
		select {
		case <-p.Exited:
			return
		case <-time.After(time.Millisecond):
		}
	}
}
