package host

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// reader reads files from the beginning, as an input with `position: ordinal`.
type ordinalReader struct {
	*positionRig
	counts map[string]int64
}

func newOrdinalReader() *ordinalReader {
	return &ordinalReader{newPositionRig(Ordinal), map[string]int64{}}
}

// again starts from the beginning, with what is in the store.
func (r *ordinalReader) again(t testing.TB) {
	r.commit(t)
	r.restart(t)
	r.counts = map[string]int64{}
}

// read offers lines one by one and counts the new ones, up to the first error.
func (r *ordinalReader) read(path string, lines ...string) (fresh int, err error) {
	r.begin()
	for _, line := range lines {
		pos := Position{Partition: path, Offset: r.counts[path], Known: true, Hash: Fingerprint([]byte(line))}
		r.counts[path]++
		isNew, err := r.apply(&pos, r.now)
		if err != nil {
			return fresh, err
		}
		if isNew {
			fresh++
		}
	}
	return fresh, nil
}

func lines(from, to int) (all []string) {
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprint("line ", i))
	}
	return all
}

func TestOrdinal(t *testing.T) {
	type file struct {
		path  string
		lines []string
		fresh int
	}
	for _, test := range []struct {
		name  string
		files []file // read after a.txt (10 lines) and b.txt (5 lines) were
		fails string // at the last file, or at the end of the input
	}{
		{name: "the same again", files: []file{{"a.txt", lines(0, 10), 0}, {"b.txt", lines(0, 5), 0}}},
		{name: "longer", files: []file{{"a.txt", lines(0, 13), 3}, {"b.txt", lines(0, 5), 0}}},
		{name: "another order", files: []file{{"b.txt", lines(0, 6), 1}, {"a.txt", lines(0, 11), 1}}},
		{name: "a path is gone", files: []file{{"b.txt", lines(0, 5), 0}}},
		{name: "a path more", files: []file{{"a.txt", lines(0, 10), 0}, {"b.txt", lines(0, 5), 0}, {"c.txt", lines(0, 3), 3}}},
		{name: "all paths are gone", files: []file{{"c.txt", lines(0, 3), 3}}},
		{name: "nothing any more"},
		{name: "an empty file", files: []file{{"a.txt", nil, 0}, {"b.txt", lines(0, 5), 0}}},
		{name: "truncated, then another path", files: []file{{"a.txt", lines(0, 9), 0}, {"b.txt", lines(0, 1), 0}}, fails: `path "a.txt"`},
		{name: "truncated, then the end", files: []file{{"a.txt", lines(0, 10), 0}, {"b.txt", lines(0, 4), 0}}, fails: `path "b.txt"`},
		{name: "rewritten at the start", files: []file{{"a.txt", append([]string{"other"}, lines(1, 10)...), 0}}, fails: "other payloads"},
		{name: "rewritten at the mark", files: []file{{"a.txt", append(lines(0, 9), "other"), 0}}, fails: "other payloads"},
		{name: "swapped", files: []file{{"a.txt", append(lines(1, 2), append(lines(0, 1), lines(2, 10)...)...), 0}}, fails: "other payloads"},
		{name: "rewritten behind the mark", files: []file{{"a.txt", append(lines(0, 10), "new"), 1}, {"b.txt", lines(0, 5), 0}}},
		{name: "the other's lines", files: []file{{"b.txt", lines(0, 10), 5}, {"a.txt", lines(0, 5), 0}}, fails: `path "a.txt"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newOrdinalReader()
			fresh, err := r.read("a.txt", lines(0, 10)...)
			require.NoError(t, err)
			require.Equal(t, 10, fresh)
			fresh, err = r.read("b.txt", lines(0, 5)...)
			require.NoError(t, err)
			require.Equal(t, 5, fresh)
			require.NoError(t, r.end())
			r.again(t)
			for _, f := range test.files {
				fresh, err = r.read(f.path, f.lines...)
				require.Equal(t, f.fresh, fresh, f.path)
				if err != nil {
					break
				}
			}
			if err == nil {
				err = r.end()
			}
			if test.fails == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrPosition)
			require.ErrorContains(t, err, test.fails)
			require.ErrorContains(t, err, "state file", "the remedy")
		})
	}
}

// Files that only grow are read again and again, each time up to anywhere: every
// line is new once.
func TestOrdinalAgainstCounting(t *testing.T) {
	rnd := newSeed(t)
	for range 50 {
		paths := []string{"", "a", "b"}[:1+rnd.IntN(3)]
		length, applied := map[string]int{}, map[string]int{}
		r := newOrdinalReader()
		for range 20 {
			for _, path := range paths {
				length[path] += rnd.IntN(10)
			}
		run:
			for _, path := range paths {
				for at := 0; at < length[path]; {
					to := min(length[path], at+1+rnd.IntN(5))
					fresh, err := r.read(path, lines(at, to)...)
					require.NoError(t, err)
					require.Equal(t, max(0, to-max(applied[path], at)), fresh)
					applied[path] = max(applied[path], to)
					if at = to; rnd.IntN(8) == 0 {
						break run // a crash: no end is seen
					}
				}
			}
			r.again(t)
		}
	}
}
