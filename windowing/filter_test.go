package windowing

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFilter: what was added is always found, and little else, also after the filter
// has grown.
func TestFilter(t *testing.T) {
	for _, test := range []struct{ reserved, keys, wrong int }{{0, 0, 0}, {0, 1, 10}, {1, 100, 300}, {0, 20_000, 1500}, {20_000, 20_000, 200}} {
		var f filter
		f.reserve(test.reserved)
		for i := range test.keys {
			f.add(hashOfKey(fmt.Appendf(nil, "key %d", i)))
		}
		wrong := 0
		for i := range 20_000 {
			if i < test.keys {
				require.True(t, f.has(hashOfKey(fmt.Appendf(nil, "key %d", i))))
			}
			if f.has(hashOfKey(fmt.Appendf(nil, "another %d", i))) {
				wrong++
			}
		}
		require.LessOrEqual(t, wrong, test.wrong, "%+v", test)
		require.LessOrEqual(t, f.bytes(), int64(8*test.keys+2*test.reserved+8*blockBytes))
		require.Equal(t, test.keys == 0 && test.reserved == 0, f.empty())
	}
}

func BenchmarkFilter(b *testing.B) {
	var f filter
	f.reserve(1 << 20)
	for i := range 1 << 20 {
		f.add(hashOfKey(fmt.Appendf(nil, "key %d", i)))
	}
	b.ReportAllocs()
	key, n := []byte("another 00000000"), uint64(0)
	for b.Loop() {
		n++
		for i, at := len(key)-1, n; at > 0; i, at = i-1, at/10 {
			key[i] = byte('0' + at%10)
		}
		f.has(hashOfKey(key))
	}
}
