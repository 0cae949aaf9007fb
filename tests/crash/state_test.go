package crash

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/tests/crash/plugins"
	"github.com/connect-windowed/connect-windowed/tests/life"
)

const pageSize = 4096

// halfway gives a scenario that was killed in the middle of its stream.
func halfway(t *testing.T, form string) *scenario {
	t.Helper()
	s := halting(t, form, orders(life.Seed(t), 1200, 4), 100)
	p := s.run(t, "")
	p.ready()
	waitFor(t, p, "some progress", func() bool { return s.acknowledged(t) > 40 && len(s.entries(t)) > 0 })
	p.Kill()
	s.goOn(t)
	return s
}

// waitFor polls for something that another process does.
func waitFor(t *testing.T, p *process, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			require.Fail(t, "waited in vain for "+what, p.Log.String())
		}
		select {
		case <-p.Exited:
			require.True(t, done(), "the process ended without %s\n%s", what, p.Log)
			return
		default:
		}
	}
}

// acknowledged is the number of lines in the file of acknowledged positions.
func (s *scenario) acknowledged(t *testing.T) int {
	data, err := os.ReadFile(filepath.Join(s.dir, plugins.MarksFile))
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(t, err)
	return bytes.Count(data, []byte("\n"))
}

// copyOf copies a scenario with its files into a new folder.
func (s *scenario) copyOf(t *testing.T) *scenario {
	t.Helper()
	c := *s
	c.dir = t.TempDir()
	require.NoError(t, os.CopyFS(c.dir, os.DirFS(s.dir)))
	c.source = strings.ReplaceAll(s.source, s.dir, c.dir)
	return &c
}

// requireRefused starts the binary and wants a clear error: exit status 1, the
// path, the words, no panic, the file as it was, nothing acknowledged.
func (s *scenario) requireRefused(t *testing.T, words ...string) {
	t.Helper()
	before, err := os.ReadFile(s.state())
	require.NoError(t, err)
	marks := s.marks(t)
	p := s.run(t, "")
	require.Equal(t, 1, p.wait(), "exit status\n%s", p.Log)
	requireClear(t, p)
	for _, word := range append(words, s.state()) {
		require.Contains(t, p.Log.String(), word)
	}
	after, err := os.ReadFile(s.state())
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, after), "the file was changed")
	require.Equal(t, marks, strings.TrimSuffix(s.marks(t), "open\n"), "something was acknowledged")
}

func (s *scenario) marks(t *testing.T) string {
	data, err := os.ReadFile(filepath.Join(s.dir, plugins.MarksFile))
	require.NoError(t, err)
	return string(data)
}

// requireClear says that a process that failed did not fall over.
func requireClear(t *testing.T, p *process) {
	t.Helper()
	for _, trace := range []string{"panic:", "fatal error:", "unexpected fault address", "\ngoroutine "} {
		require.NotContains(t, p.Log.String(), trace)
	}
}

func TestDamagedStateFile(t *testing.T) {
	s := halfway(t, inputHost)
	whole, err := os.ReadFile(s.state())
	require.NoError(t, err)
	used := usedBytes(t, s.state())
	for name, text := range map[string][]byte{
		"cut to half":      whole[:used/2],
		"cut by a page":    whole[:used-pageSize],
		"cut to one page":  whole[:pageSize],
		"cut to ten bytes": whole[:10],
		"a text file":      []byte(strings.Repeat("this is no state file\n", 1000)),
		"a short text":     []byte("x"),
		"first page zero":  append(make([]byte, pageSize), whole[pageSize:]...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := s.copyOf(t)
			require.NoError(t, os.WriteFile(c.state(), text, 0o600))
			c.requireRefused(t)
			require.NoError(t, os.WriteFile(c.state(), whole, 0o600))
			c.finish(t)
			c.verify(t)
		})
	}
	t.Run("emptied", func(t *testing.T) { // may be taken for new
		t.Parallel()
		c := s.copyOf(t)
		require.NoError(t, os.WriteFile(c.state(), nil, 0o600))
		p := c.run(t, "")
		require.Contains(t, []int{0, 1}, p.wait())
		requireClear(t, p)
	})
}

// usedBytes is how much of a state file holds pages. It grows by more than is needed:
// what is behind them may be missing.
func usedBytes(t *testing.T, path string) (used int) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	require.NoError(t, err)
	require.NoError(t, db.View(func(tx *bolt.Tx) error {
		used = int(tx.Size())
		return nil
	}))
	require.NoError(t, db.Close())
	return used
}

// A page of zeros is found at the start, or when it is read, or it was not in
// use: then the answer is right.
func TestZeroedPage(t *testing.T) {
	for _, form := range []string{inputHost, processorHost, standalone} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			s := halfway(t, form)
			whole, err := os.ReadFile(s.state())
			require.NoError(t, err)
			pages := rand.Perm(len(whole) / pageSize)
			if !soaks() {
				pages = pages[:min(len(pages), 12)]
			}
			found := 0
			for _, page := range pages {
				c := s.copyOf(t)
				text := bytes.Clone(whole)
				clear(text[page*pageSize : (page+1)*pageSize])
				require.NoError(t, os.WriteFile(c.state(), text, 0o600))
				p := c.run(t, "")
				code := p.wait()
				requireClear(t, p)
				if code == 0 {
					c.verify(t)
					continue
				}
				found++
				require.Equal(t, 1, code, "page %d\n%s", page, p.Log)
				require.Contains(t, p.Log.String(), c.state(), "page %d", page)
				require.NoError(t, os.RemoveAll(c.dir))
			}
			t.Logf("%d of %d pages were missed", found, len(pages))
		})
	}
}

func TestForeignAndNewerFile(t *testing.T) {
	change := func(t *testing.T, path string, do func(tx *bolt.Tx) error) {
		db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second})
		require.NoError(t, err)
		require.NoError(t, db.Update(do))
		require.NoError(t, db.Close())
	}
	t.Run("a bbolt file of another program", func(t *testing.T) {
		s := topic(t, inputHost, orders(life.Seed(t), 50, 4), 0)
		change(t, s.state(), func(tx *bolt.Tx) error {
			_, err := tx.CreateBucket([]byte("users"))
			return err
		})
		writeMarks(t, s)
		s.requireRefused(t)
	})
	t.Run("a newer version", func(t *testing.T) {
		s := topic(t, inputHost, orders(life.Seed(t), 50, 4), 0)
		s.finish(t)
		change(t, s.state(), func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("connect-windowed")).Put([]byte("format"), kv.AppendRecord(nil, 99, nil))
		})
		s.requireRefused(t, "99")
	})
}

func writeMarks(t *testing.T, s *scenario) {
	write(t, filepath.Join(s.dir, plugins.MarksFile), "")
}

// State that another definition wrote is refused with what changed and the ways
// out; what may change freely may.
func TestOtherDefinition(t *testing.T) {
	for _, form := range []string{inputHost, processorHost, standalone} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			s := halfway(t, form)
			config := s.config()
			for field, change := range map[string][2]string{
				"size":       {"size: 10s", "size: 60s"},
				"offset":     {"size: 10s", "size: 10s, offset: 1s"},
				"group_by":   {"k: this.k", "k: this.p"},
				"aggregates": {"n: count()", "m: count()"},
			} {
				require.Contains(t, config, change[0])
				before, err := os.ReadFile(s.state())
				require.NoError(t, err)
				p := run(t, s.dir, strings.Replace(config, change[0], change[1], 1), "")
				require.Equal(t, 1, p.wait(), "%s\n%s", field, p.Log)
				requireClear(t, p)
				for _, word := range []string{field, "name"} {
					require.Contains(t, p.Log.String(), word)
				}
				after, err := os.ReadFile(s.state())
				require.NoError(t, err)
				if form != standalone { // there the operators before it have started
					require.True(t, bytes.Equal(before, after), "%s: the file was changed", field)
				}
			}
			p := run(t, s.dir, strings.Replace(config, "delay: 20s", "delay: 25s", 1), "")
			require.Zero(t, p.wait(), "%s", p.Log)
			s.verify(t)
		})
	}
}

// A second process is told within seconds who holds the file, and the first goes
// on undisturbed.
func TestLockedStateFile(t *testing.T) {
	first := halting(t, inputHost, orders(life.Seed(t), 2000, 4), 100)
	p := first.run(t, "")
	p.ready()
	waitFor(t, p, "the state file", func() bool { _, err := os.Stat(first.state()); return err == nil })

	second := topic(t, inputHost, first.shape, 0)
	config := strings.ReplaceAll(second.config(), second.state(), first.state())
	start := time.Now()
	q := run(t, second.dir, config, "")
	require.Equal(t, 1, q.wait(), "exit status\n%s", q.Log)
	require.Less(t, time.Since(start), 30*time.Second)
	requireClear(t, q)
	require.Contains(t, q.Log.String(), first.state())
	require.Contains(t, q.Log.String(), "in use")

	for _, subcommand := range []string{"lint", "test"} { // they leave the file alone
		q := run(t, second.dir, config+embedded, "", subcommand, filepath.Join(second.dir, "config.yaml"))
		require.Zero(t, q.wait(), "%s\n%s", subcommand, q.Log)
	}
	require.Zero(t, p.term(), "%s", p.Log)
	first.goOn(t)
	first.finish(t)
	first.verify(t)
}

// embedded are tests that a configuration brings along.
const embedded = `
tests:
  - name: an open window gives nothing
    target_processors: /input/windowed/processors
    input_batch:
      - { json_content: { ts: 1000, p: p0, k: a, v: 1 }, metadata: { kafka_topic: orders, kafka_partition: 0, kafka_offset: 1 } }
    output_batches: []
`

// lint and test never create a state file.
func TestLintAndTestCreateNoFile(t *testing.T) {
	s := topic(t, inputHost, orders(1, 10, 4), 0)
	for _, subcommand := range []string{"lint", "test"} {
		p := run(t, s.dir, s.config()+embedded, "", subcommand, filepath.Join(s.dir, "config.yaml"))
		require.Zero(t, p.wait(), "%s\n%s", subcommand, p.Log)
		require.NoFileExists(t, s.state(), subcommand)
	}
}

// Two hosts of a process may share a file, each under its own name; one name twice
// is refused.
func TestOneFileForTwo(t *testing.T) {
	s := topic(t, inputHost, orders(life.Seed(t), 300, 4), 0)
	other := t.TempDir()
	pair := func(first, second string) string {
		host := strings.TrimPrefix(s.config()[:strings.Index(s.config(), "output:")], "input:\n")
		host = "      - " + strings.TrimSpace(strings.ReplaceAll(host, "\n", "\n      "))
		named := func(text, name string) string {
			if name == "" {
				return text
			}
			return strings.Replace(text, "state: state", "name: "+name+"\n          state: state", 1)
		}
		return "input:\n  broker:\n    inputs:\n" + named(host, first) + "\n" +
			named(strings.Replace(host, fmt.Sprintf("dir: %q", s.dir), fmt.Sprintf("dir: %q", other), 1), second) + "\n" +
			s.config()[strings.Index(s.config(), "output:"):]
	}
	for _, names := range [][2]string{{"", ""}, {"orders", "orders"}} {
		p := run(t, s.dir, pair(names[0], names[1]), "")
		require.Equal(t, 1, p.wait(), "exit status\n%s", p.Log)
		requireClear(t, p)
		require.Contains(t, p.Log.String(), "name")
	}
	for _, path := range []string{filepath.Join(s.dir, plugins.MarksFile), filepath.Join(other, plugins.MarksFile), s.journal()} {
		_ = os.Remove(path) // the first of the two had started
	}
	p := run(t, s.dir, pair("left", "right"), "")
	require.Zero(t, p.wait(), "exit status\n%s", p.Log)
	s.verify(t) // both have the same stream, so the same rows under the same keys
	acknowledged, err := os.ReadFile(filepath.Join(other, plugins.MarksFile))
	require.NoError(t, err)
	require.Greater(t, bytes.Count(acknowledged, []byte("\n")), 4)
}
