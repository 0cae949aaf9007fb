package sql

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// database is a file of SQLite for one test.
type database struct {
	testing.TB
	path string
	read *stdsql.DB // a reader of its own, as another process would have
}

func newDatabase(t testing.TB, statements ...string) *database {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	read, err := stdsql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, read.Close()) })
	d := &database{t, path, read}
	for _, s := range statements {
		d.exec(s)
	}
	return d
}

func (d *database) exec(statement string) {
	d.Helper()
	_, err := d.read.Exec(statement)
	require.NoError(d, err, statement)
}

// rows gives what a query finds, a line for each row.
func (d *database) rows(query string) (lines []string) {
	d.Helper()
	found, err := d.read.Query(query)
	require.NoError(d, err, query)
	defer found.Close()
	columns, err := found.Columns()
	require.NoError(d, err)
	for found.Next() {
		values, to := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			to[i] = &values[i]
		}
		require.NoError(d, found.Scan(to...))
		words := make([]string, len(values))
		for i, v := range values {
			words[i] = fmt.Sprint(v)
		}
		lines = append(lines, strings.Join(words, "|"))
	}
	require.NoError(d, found.Err())
	return lines
}

// makers and specs are those of the outputs by name.
var (
	makers = map[string]func(*service.ParsedConfig) (*writer, error){nameInsert: newInsert, nameRaw: newRaw}
	specs  = map[string]func() *service.ConfigSpec{nameInsert: insertSpec, nameRaw: rawSpec}
)

// construct makes an output as Benthos does.
func construct(name, conf string) (*writer, error) {
	parsed, err := specs[name]().ParseYAML(conf, nil)
	if err != nil {
		return nil, err
	}
	w, err := makers[name](parsed)
	if err != nil {
		return nil, err
	}
	res := service.MockResources()
	w.log, w.fs = res.Logger(), res.FS()
	return w, nil
}

// output is a connected output that writes to the database, unless it has a DSN.
func (d *database) output(name, conf string) *writer {
	d.Helper()
	if !strings.Contains(conf, "dsn:") {
		conf = "dsn: file:" + d.path + "\n" + conf
	}
	w, err := construct(name, "driver: sqlite\n"+conf)
	require.NoError(d, err)
	require.NoError(d, w.Connect(d.Context()))
	d.Cleanup(func() { require.NoError(d, w.Close(context.Background())) })
	return w
}

func batchOf(contents ...string) (batch service.MessageBatch) {
	for _, c := range contents {
		batch = append(batch, service.NewMessage([]byte(c)))
	}
	return batch
}

// namedBy gives the numbers of the messages that a BatchError names, with their
// errors.
func namedBy(t testing.TB, batch service.MessageBatch, index *service.Indexer, err error) map[int]string {
	t.Helper()
	var named *service.BatchError
	require.ErrorAs(t, err, &named)
	found := map[int]string{}
	named.WalkMessagesIndexedBy(index, func(i int, _ *service.Message, err error) bool {
		if err != nil {
			found[i] = err.Error()
		}
		return true
	})
	return found
}
