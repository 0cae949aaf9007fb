package sql

import (
	"context"
	stdsql "database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
	"modernc.org/sqlite"
)

// hook is called by hook(x) in SQL of these tests, and its result is the result.
var hook func(x any) (any, error)

func init() {
	sqlite.MustRegisterScalarFunction("hook", 1, func(_ *sqlite.FunctionContext, args []sqldriver.Value) (sqldriver.Value, error) {
		return hook(args[0])
	})
}

const (
	keyed    = "CREATE TABLE t (k TEXT PRIMARY KEY, revision INTEGER NOT NULL, v INTEGER CHECK (v >= 0))"
	intoT    = "table: t\ncolumns: [ k, revision, v ]\nargs_mapping: root = [ this.k, this.r, this.v ]\n"
	newerWin = "suffix: ON CONFLICT (k) DO UPDATE SET revision = excluded.revision, v = excluded.v WHERE excluded.revision > t.revision\n"
)

func TestInsert(t *testing.T) {
	d := newDatabase(t, keyed)
	w := d.output(nameInsert, intoT+"options: [ OR IGNORE ]\n")
	require.NoError(t, w.WriteBatch(t.Context(), batchOf(`{"k":"a","r":1,"v":1}`, `{"k":"a","r":2,"v":2}`, `{"k":"b","r":1,"v":null}`)))
	require.Equal(t, []string{"a|1|1", "b|1|<nil>"}, d.rows("SELECT * FROM t ORDER BY k"))
}

// Several revisions of a key may come in one batch, and older ones after newer
// ones: a crash, a retry or a parallel batch.
func TestUpsertKeepsTheNewest(t *testing.T) {
	d := newDatabase(t, keyed)
	w := d.output(nameInsert, intoT+newerWin)
	for _, batch := range []service.MessageBatch{
		batchOf(`{"k":"a","r":1,"v":1}`, `{"k":"a","r":3,"v":3}`, `{"k":"a","r":2,"v":2}`, `{"k":"b","r":1,"v":10}`),
		batchOf(`{"k":"b","r":2,"v":20}`),
		batchOf(`{"k":"b","r":1,"v":10}`),
	} {
		require.NoError(t, w.WriteBatch(t.Context(), batch))
	}
	require.Equal(t, []string{"a|3|3", "b|2|20"}, d.rows("SELECT * FROM t ORDER BY k"))
}

func TestBatchIsOneTransaction(t *testing.T) {
	d := newDatabase(t, "CREATE TABLE t (v INTEGER)")
	w := d.output(nameRaw, "query: INSERT INTO t VALUES (hook(?))\nargs_mapping: root = [ this.v ]\n")
	var seen []string
	broken := errors.New("the lights went out")
	hook = func(x any) (any, error) {
		seen = append(seen, d.rows("SELECT count(*) FROM t")...)
		if x == int64(3) {
			return nil, broken
		}
		return x, nil
	}
	batch := batchOf(`{"v":1}`, `{"v":2}`, `{"v":3}`, `{"v":4}`)
	err := w.WriteBatch(t.Context(), batch)
	require.ErrorContains(t, err, broken.Error())
	var named *service.BatchError
	require.NotErrorAs(t, err, &named, "an error that is not the row's own fails the batch")
	require.Equal(t, []string{"0", "0", "0"}, seen, "nobody sees a part of a batch")
	require.Equal(t, []string{"0"}, d.rows("SELECT count(*) FROM t"), "a failure in the middle leaves nothing")

	broken = nil
	hook = func(x any) (any, error) { return x, nil }
	require.NoError(t, w.WriteBatch(t.Context(), batch))
	require.Equal(t, []string{"4"}, d.rows("SELECT count(*) FROM t"), "readers see a batch at once")
}

// A row that the table refuses takes no other with it, and is named.
func TestRefusedRowsAreNamed(t *testing.T) {
	d := newDatabase(t, keyed)
	w := d.output(nameInsert, intoT)
	batch := batchOf(`{"k":"a","r":1,"v":1}`, `{"k":"b","r":1,"v":-1}`, `{"k":"c","r":1,"v":3}`, `not JSON`, `{"k":"a","r":1,"v":1}`, `{"k":"d","v":1}`)
	index := batch.Index()
	named := namedBy(t, batch, index, w.WriteBatch(t.Context(), batch))
	require.Len(t, named, 4)
	require.Contains(t, named[1], "CHECK constraint failed")
	require.Contains(t, named[3], "args_mapping")
	require.Contains(t, named[4], "ON CONFLICT")
	require.Contains(t, named[5], "column revision, value null")
	require.Equal(t, []string{"a|1|1", "c|1|3"}, d.rows("SELECT * FROM t ORDER BY k"))

	alone := w.WriteBatch(t.Context(), batchOf(`{"k":"b","r":1,"v":-1}`))
	require.ErrorContains(t, alone, "CHECK constraint failed")
	require.Equal(t, []string{"2"}, d.rows("SELECT count(*) FROM t"))
}

// The queries of a message are executed all or not at all.
func TestRefusedMessageLeavesNoTrace(t *testing.T) {
	d := newDatabase(t, keyed, "CREATE TABLE log (k TEXT)")
	w := d.output(nameRaw, `
query: INSERT INTO log VALUES (?)
args_mapping: root = [ this.k ]
queries:
  - query: INSERT INTO t VALUES (?, 1, ?)
    args_mapping: root = [ this.k, this.v ]
  - query: INSERT INTO log VALUES ('done')
`)
	batch := batchOf(`{"k":"a","v":1}`, `{"k":"b","v":-1}`, `{"k":"c","v":3}`)
	named := namedBy(t, batch, batch.Index(), w.WriteBatch(t.Context(), batch))
	require.Len(t, named, 1)
	require.Contains(t, named[1], "CHECK constraint failed")
	require.Equal(t, []string{"a", "done", "c", "done"}, d.rows("SELECT k FROM log ORDER BY rowid"))
}

func TestChosenQuery(t *testing.T) {
	d := newDatabase(t, keyed)
	conf := `
queries:
  - when: root = @timing == "delete"
    query: DELETE FROM t WHERE k = ? AND revision < ?
    args_mapping: root = [ this.k, this.r ]
  - query: INSERT INTO t VALUES (?, ?, ?) ON CONFLICT (k) DO UPDATE SET revision = excluded.revision, v = excluded.v WHERE excluded.revision > t.revision
    args_mapping: root = [ this.k, this.r, this.v ]
`
	w := d.output(nameRaw, conf)
	batch := batchOf(`{"k":"a","r":1,"v":1}`, `{"k":"b","r":1,"v":1}`, `{"k":"a","r":2}`, `{"k":"b","r":1}`)
	batch[2].MetaSetMut("timing", "delete")
	batch[3].MetaSetMut("timing", "delete") // older than what is there
	require.NoError(t, w.WriteBatch(t.Context(), batch))
	require.Equal(t, []string{"b|1|1"}, d.rows("SELECT * FROM t ORDER BY k"))

	w = d.output(nameRaw, conf[:len(conf)-1]+"\n    when: root = this.v != null\n")
	err := w.WriteBatch(t.Context(), batchOf(`{"k":"a","r":1}`))
	require.ErrorContains(t, err, "queries: no entry's when holds for the message")
}

func TestDynamicQuery(t *testing.T) {
	d := newDatabase(t, "CREATE TABLE t_a (v INTEGER)", "CREATE TABLE t_b (v INTEGER)")
	w := d.output(nameRaw, `
query: INSERT INTO t_${! this.k } VALUES (?)
unsafe_dynamic_query: true
args_mapping: root = [ this.v ]
`)
	batch := batchOf(`{"k":"a","v":1}`, `{"k":"none","v":2}`, `{"k":"b","v":3}`)
	named := namedBy(t, batch, batch.Index(), w.WriteBatch(t.Context(), batch))
	require.Len(t, named, 1, "the text is the row's own, and so is what is wrong with it")
	require.Contains(t, named[1], "no such table: t_none")
	require.Equal(t, []string{"1", "3"}, d.rows("SELECT v FROM t_a UNION SELECT v FROM t_b"))
}

// Without the field, what looks like an interpolation is SQL.
func TestQueryIsNotInterpolated(t *testing.T) {
	d := newDatabase(t, "CREATE TABLE t (v TEXT)")
	w := d.output(nameRaw, `query: INSERT INTO t VALUES ('${! this.k }')`)
	require.NoError(t, w.WriteBatch(t.Context(), batchOf(`{"k":"a"}`)))
	require.Equal(t, []string{"${! this.k }"}, d.rows("SELECT v FROM t"))
}

// Whatever the order in which parallel batches come, the table ends with the
// newest revisions, and what was deleted stays deleted.
func TestParallelBatches(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	d := newDatabase(t, "CREATE TABLE t (k TEXT PRIMARY KEY, revision INTEGER NOT NULL, v INTEGER, deleted INTEGER NOT NULL)")
	w := d.output(nameInsert, `
table: t
columns: [ k, revision, v, deleted ]
args_mapping: root = [ this.k, this.r, this.v, this.v == null ]
suffix: ON CONFLICT (k) DO UPDATE SET revision = excluded.revision, v = excluded.v, deleted = excluded.deleted WHERE excluded.revision > t.revision
`)
	var all service.MessageBatch
	var want []string
	for k := range 20 {
		last := 1 + rnd.IntN(30)
		for r := 1; r <= last; r++ {
			v, text := rnd.IntN(4), "null"
			if v > 0 {
				text = strconv.Itoa(v)
			}
			all = append(all, batchOf(fmt.Sprintf(`{"k":"k%02d","r":%d,"v":%s}`, k, r, text))...)
			if r == last && v > 0 {
				want = append(want, fmt.Sprintf("k%02d|%d|%d", k, r, v))
			}
		}
	}
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var writers sync.WaitGroup
	for len(all) > 0 {
		n := min(1+rnd.IntN(20), len(all))
		batch := all[:n]
		all = all[n:]
		writers.Go(func() {
			if err := w.WriteBatch(context.Background(), batch); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	require.Equal(t, want, d.rows("SELECT k, revision, v FROM t WHERE NOT deleted ORDER BY k"))
}

// Another process may hold the file for longer than we wait: nothing is written,
// the error says so, and the next try succeeds.
func TestLockedDatabase(t *testing.T) {
	d := newDatabase(t, keyed)
	w := d.output(nameInsert, intoT)
	fast, err := construct(nameInsert, "driver: sqlite\ndsn: file:"+d.path+"?_pragma=busy_timeout(20)\n"+intoT)
	require.NoError(t, err)
	require.NoError(t, fast.Connect(t.Context()))
	defer fast.Close(context.Background())
	other, err := d.read.Conn(t.Context())
	require.NoError(t, err)
	defer other.Close()
	_, err = other.ExecContext(t.Context(), "BEGIN EXCLUSIVE")
	require.NoError(t, err)
	err = fast.WriteBatch(t.Context(), batchOf(`{"k":"a","r":1,"v":1}`))
	require.ErrorContains(t, err, "busy_timeout")
	require.NotErrorIs(t, err, service.ErrNotConnected)
	waits := make(chan error)
	go func() { waits <- w.WriteBatch(context.Background(), batchOf(`{"k":"b","r":1,"v":1}`)) }() // waits for five seconds
	_, err = other.ExecContext(t.Context(), "COMMIT")
	require.NoError(t, err)
	require.NoError(t, <-waits)
	require.NoError(t, fast.WriteBatch(t.Context(), batchOf(`{"k":"a","r":1,"v":1}`)))
	require.Equal(t, []string{"a", "b"}, d.rows("SELECT k FROM t ORDER BY k"))
}

func TestInitStatements(t *testing.T) {
	d := newDatabase(t)
	one := filepath.Join(t.TempDir(), "one.sql")
	require.NoError(t, os.WriteFile(one, []byte("CREATE TABLE IF NOT EXISTS t (k TEXT); CREATE TABLE IF NOT EXISTS u (k TEXT);"), 0o600))
	conf := fmt.Sprintf("init_files: [ %q ]\ninit_statement: CREATE UNIQUE INDEX IF NOT EXISTS t_k ON t (k); INSERT INTO u VALUES ('begun');\n", filepath.Join(filepath.Dir(one), "*.sql")) +
		"table: t\ncolumns: [ k ]\nargs_mapping: root = [ this.k ]\nsuffix: ON CONFLICT (k) DO NOTHING\n"
	w := d.output(nameInsert, conf)
	require.NoError(t, w.Connect(t.Context()), "a second connection")
	require.NoError(t, w.WriteBatch(t.Context(), batchOf(`{"k":"a"}`, `{"k":"a"}`)))
	require.Equal(t, []string{"a"}, d.rows("SELECT k FROM t"))
	require.Equal(t, []string{"begun"}, d.rows("SELECT k FROM u"), "executed once in the life of the output")

	w = d.output(nameInsert, "init_statement: CREATE NONSENSE\ntable: t\ncolumns: [ k ]\nargs_mapping: root = [ this.k ]\n")
	require.NoError(t, w.WriteBatch(t.Context(), batchOf(`{"k":"b"}`)), "a failing init statement is a warning")
}

func TestFolderIsMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "test.db")
	w, err := construct(nameRaw, "driver: sqlite\ndsn: file:"+path+"\ninit_verify_conn: true\nquery: SELECT 1\n")
	require.NoError(t, err)
	require.NoFileExists(t, path, "the constructor opens nothing")
	require.NoError(t, w.Connect(t.Context()))
	require.NoError(t, w.Close(context.Background()))
	require.FileExists(t, path)
}

// Somebody removes the file, or puts another one in its place, while it is open:
// nothing more is written to what nobody sees.
func TestRemovedFile(t *testing.T) {
	d := newDatabase(t)
	folder := filepath.Dir(d.path)
	path := filepath.Join(folder, "with space.db")
	w := d.output(nameInsert, "dsn: file:"+folder+"/with%20space.db\ninit_statement: CREATE TABLE IF NOT EXISTS t (k TEXT)\ntable: t\ncolumns: [ k ]\nargs_mapping: root = [ this ]\n")
	content := func() []string {
		read, err := stdsql.Open("sqlite", path)
		require.NoError(t, err)
		defer read.Close()
		return (&database{t, path, read}).rows("SELECT k FROM t")
	}
	write := func(k string) error { return w.WriteBatch(t.Context(), batchOf(`"`+k+`"`)) }
	require.NoError(t, write("a"))
	require.NoError(t, write("b"))
	require.Equal(t, []string{"a", "b"}, content())

	for _, suffix := range []string{"", "-wal", "-shm"} {
		require.NoError(t, os.RemoveAll(path+suffix))
	}
	require.ErrorIs(t, write("c"), service.ErrNotConnected)
	require.NoError(t, w.Connect(t.Context()))
	require.NoError(t, write("c"))
	require.Equal(t, []string{"c"}, content(), "a new file, with its table")

	require.NoError(t, os.Rename(path, path+".old"))
	require.NoError(t, os.Rename(path+"-wal", path+".old-wal"))
	require.NoError(t, os.RemoveAll(path+"-shm"))
	require.ErrorIs(t, write("d"), service.ErrNotConnected)
	require.NoError(t, w.Connect(t.Context()))
	require.NoError(t, write("d"))
	require.NoError(t, write("e"))
	require.Equal(t, []string{"d", "e"}, content())
}

func TestUnreachableFile(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "folder.db")
	require.NoError(t, os.Mkdir(folder, 0o700))
	w, err := construct(nameRaw, "driver: sqlite\ndsn: file:"+folder+"\nquery: SELECT 1\n")
	require.NoError(t, err)
	require.ErrorIs(t, w.WriteBatch(t.Context(), batchOf("1")), service.ErrNotConnected, "before Connect")
	require.NoError(t, w.Connect(t.Context()), "nothing to say yet")
	require.ErrorIs(t, w.WriteBatch(t.Context(), batchOf("1")), service.ErrNotConnected)
	err = w.Connect(t.Context())
	require.ErrorContains(t, err, folder)
	require.ErrorContains(t, err, "must exist and be writable")
	require.NoError(t, w.Close(context.Background()))
	require.ErrorIs(t, w.WriteBatch(t.Context(), batchOf("1")), service.ErrNotConnected, "after Close")
}
