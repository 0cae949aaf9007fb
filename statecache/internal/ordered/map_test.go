package ordered

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// check states the invariants of the structure.
func check[V any](t *testing.T, m *Map[V]) {
	t.Helper()
	require.Len(t, m.firsts, len(m.blocks))
	size, last := 0, ""
	for i, b := range m.blocks {
		require.NotEmpty(t, b.keys, "block %d", i)
		require.LessOrEqual(t, len(b.keys), maxBlock)
		require.Len(t, b.vals, len(b.keys))
		require.Equal(t, m.firsts[i], b.keys[0])
		require.Len(t, b.nums, len(b.keys))
		require.LessOrEqual(t, b.common, CommonPrefix(b.keys[0], b.keys[len(b.keys)-1]))
		for j, k := range b.keys {
			require.True(t, i+j == 0 || last < k, "%q before %q", last, k)
			last = k
			require.Equal(t, Number(k, b.common), b.nums[j])
		}
		size += len(b.keys)
	}
	require.Equal(t, size, m.Len())
}

func contents(m *Map[int], from, to string) (keys []string, vals []int) {
	for c := m.Seek(from); c.Valid() && below(c.Key(), to); c.Next() {
		keys, vals = append(keys, c.Key()), append(vals, *c.Value())
	}
	return keys, vals
}

func modelled(model map[string]int, from, to string) (keys []string, vals []int) {
	for k := range model {
		if k >= from && below(k, to) {
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	for _, k := range keys {
		vals = append(vals, model[k])
	}
	return keys, vals
}

// TestAgainstModel compares with a plain map under key spaces from dense to
// sparse, so that blocks fill, split, empty and join.
func TestAgainstModel(t *testing.T) {
	for _, space := range []int{3, 300, 5000, 1 << 30} {
		t.Run(fmt.Sprint(space), func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 1))
			heads := []string{"", "", "", "a long common head/", "a long common head/and more/", "a\x00"}
			tails := []string{"", "", "", "\x00", "\x00\x00", "\xff"}
			key := func() string {
				return heads[r.IntN(len(heads))] + fmt.Sprintf("%x", r.IntN(space)) + tails[r.IntN(len(tails))]
			}
			var m Map[int]
			model := map[string]int{}
			for step := range 20000 {
				switch n := r.IntN(1000); {
				case n < 900:
					k := key()
					model[k] = step
					if n%2 == 0 {
						m.Set(k, step)
					} else {
						m.Replace(k, step)
					}
				case n < 995:
					k := key()
					_, there := model[k]
					require.Equal(t, there, m.DeleteRange(k, k+"\x00") == 1)
					delete(model, k)
				default:
					from, to := key(), key()
					if n == 999 {
						to = ""
					}
					keys, _ := modelled(model, from, to)
					require.Equal(t, len(keys), m.DeleteRange(from, to))
					for _, k := range keys {
						delete(model, k)
					}
				}
				if step%500 == 0 {
					check(t, &m)
					from, to := key(), key()
					wantKeys, wantVals := modelled(model, from, to)
					keys, vals := contents(&m, from, to)
					require.Equal(t, wantKeys, keys)
					require.Equal(t, wantVals, vals)
					compareBefore(t, &m, model, from)
				}
			}
			keys, _ := contents(&m, "", "")
			want, _ := modelled(model, "", "")
			require.Equal(t, want, keys)
			require.Equal(t, len(want), m.DeleteRange("", ""))
			check(t, &m)
			require.Zero(t, m.Len())
		})
	}
}

func compareBefore(t *testing.T, m *Map[int], model map[string]int, key string) {
	t.Helper()
	want, found := "", false
	for k := range model {
		if k <= key && k >= want {
			want, found = k, true
		}
	}
	c := m.Before(key)
	require.Equal(t, found, c.Valid())
	if found {
		require.Equal(t, want, c.Key())
	}
}

func TestEmpty(t *testing.T) {
	var m Map[int]
	require.Nil(t, m.At(""))
	require.Zero(t, m.DeleteRange("", ""))
	c := m.Seek("")
	require.False(t, c.Valid())
	c = m.Before("x")
	require.False(t, c.Valid())
	m.Set("", 1)
	require.Equal(t, 1, *m.At(""))
	require.Zero(t, m.DeleteRange("b", "a"), "a range turned round holds nothing")
	require.Equal(t, 1, m.DeleteRange("", "\x00"))
	check(t, &m)
}

func BenchmarkSet(b *testing.B) {
	for _, n := range []int{1000, 100_000, 1_000_000} {
		keys := make([]string, n)
		r := rand.New(rand.NewPCG(1, 1))
		for i := range keys {
			keys[i] = fmt.Sprintf("%016x", r.Uint64())
		}
		b.Run(fmt.Sprintf("insert/keys=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			var m Map[[]byte]
			for i := 0; b.Loop(); i++ {
				if i%n == 0 {
					m = Map[[]byte]{}
				}
				m.Set(keys[i%n], nil)
			}
		})
		var m Map[[]byte]
		for _, k := range keys {
			m.Set(k, nil)
		}
		b.Run(fmt.Sprintf("get/keys=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				m.At(keys[i%n])
			}
		})
		b.Run(fmt.Sprintf("scan/keys=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			c := m.Seek("")
			for b.Loop() {
				if !c.Valid() {
					c = m.Seek("")
				}
				c.Next()
			}
		})
	}
}
