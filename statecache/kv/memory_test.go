package kv

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMemory(t *testing.T) {
	s := NewMemory()
	var b Batch
	b.Put([]byte("a"), []byte("1"))
	b.Put([]byte("b"), nil)
	require.NoError(t, s.Commit(&b))
	b.Reset() // the store must not live on the batch's bytes
	b.Put([]byte("zzzz"), []byte("zz"))

	v, err := s.Get([]byte("a"))
	require.NoError(t, err)
	require.Equal(t, "1", string(v))
	v[0] = 'x'
	v, _ = s.Get([]byte("a"))
	require.Equal(t, "1", string(v), "Get copies")
	v, _ = s.Get([]byte("b"))
	require.NotNil(t, v, "an empty value is there")
	v, _ = s.Get([]byte("c"))
	require.Nil(t, v)

	stop := errors.New("stop")
	require.ErrorIs(t, s.Scan(nil, nil, func(_, _ []byte) error { return stop }), stop)

	require.NoError(t, s.Close())
	_, err = s.Get([]byte("a"))
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, s.Commit(&b), ErrClosed)
	require.ErrorIs(t, s.Scan(nil, nil, nil), ErrClosed)
}

func TestMemoryAgainstModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	s := NewMemory()
	model := map[string]string{}
	key := func() []byte { return fmt.Appendf(nil, "%03x", r.IntN(400)) }
	var b Batch
	for range 500 {
		b.Reset()
		for range r.IntN(20) {
			switch k := key(); r.IntN(6) {
			case 0:
				to := key()
				b.Delete(k, to)
				for m := range model {
					if m >= string(k) && m < string(to) {
						delete(model, m)
					}
				}
			case 1:
				b.Delete(k, After(k))
				delete(model, string(k))
			default:
				v := bytes.Repeat([]byte{byte(r.IntN(256))}, r.IntN(30))
				b.Put(k, v)
				model[string(k)] = string(v)
			}
		}
		require.NoError(t, s.Commit(&b))
		var want []string
		for k, v := range model {
			want = append(want, k+"="+v)
		}
		sort.Strings(want)
		require.Equal(t, want, entries(t, s, nil, nil))
	}
}

func BenchmarkMemoryCommit(b *testing.B) {
	for _, n := range []int{300_000, 3_000_000} {
		b.Run(fmt.Sprintf("keys=%d/batch=500", n), func(b *testing.B) {
			s := NewMemory()
			r := rand.New(rand.NewPCG(1, 1))
			value := make([]byte, 80)
			var batch Batch
			for i := range n {
				batch.Put(AppendUint64(nil, uint64(i)*0x9e3779b97f4a7c15), value)
				if batch.Size() > 1<<20 {
					require.NoError(b, s.Commit(&batch))
					batch.Reset()
				}
			}
			var key []byte
			b.ReportAllocs()
			for b.Loop() {
				batch.Reset()
				for range 500 {
					key = AppendUint64(key[:0], uint64(r.IntN(n))*0x9e3779b97f4a7c15)
					batch.Put(key, value)
				}
				if err := s.Commit(&batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
