package host

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// stored is a record of a host's state, without its frame.
type stored struct {
	version    byte
	key, value []byte
}

// richState is the state of hosts in the middle of everything: an open step,
// undelivered and flushed rows, gaps, split messages, several partitions.
func richState(t testing.TB, reply bool) []stored {
	r := newRig(t, twoDomains, func(c *Config) { c.Flush, c.Reply = !reply, reply })
	r.limit = 2
	r.open()
	give := func(b *Batch) {
		if reply {
			_, err := r.Apply(context.Background(), b)
			require.NoError(t, err)
			return
		}
		r.wait(r.offer(b), "the commit")
	}
	for p, partition := range []string{"p0", "p1"} {
		for i := range int64(6) {
			n, twin := at(20*i+int64(p), "a1"), at(20*i+1, "b1")
			n.partition, twin.partition = partition, partition
			give(events(3*i, n, twin))
			split := events(3*i, n, n) // a part more
			split.Entries[1].Position.Offset = 3 * i
			give(split)
		}
	}
	if !reply {
		s := r.sink(nil)
		r.end()
		s.ended()
		r.reopen()
	}
	var notes []*note
	for i := range 9 {
		notes = append(notes, at(200, string(rune('a'+i))+"1"))
	}
	give(events(0, notes...))
	before := r.disk.commits()
	give(events(100, at(230, "z")))
	r.close()
	half := r.disk.after(t, before+2)
	var all []stored
	require.NoError(t, half.Scan(nil, nil, func(key, value []byte) error {
		version, payload, err := kv.Record(value)
		require.NoError(t, err)
		all = append(all, stored{version, bytes.Clone(key), bytes.Clone(payload)})
		return nil
	}))
	return all
}

// reopenWith starts a host on records, of which one has other bytes.
func reopenWith(t testing.TB, reply bool, records []stored, index int, value []byte) error {
	var b kv.Batch
	for i, s := range records {
		payload := s.value
		if i == index {
			payload = value
		}
		b.Put(s.key, kv.AppendRecord(nil, s.version, payload))
	}
	r := newRig(t, twoDomains, func(c *Config) { c.Flush, c.Reply = !reply, reply })
	r.disk = nil
	cfg := r.config()
	cfg.Store = kv.NewMemory()
	require.NoError(t, cfg.Store.Commit(&b))
	h := newHost(cfg)
	o := newOwner(h)
	defer o.cancel()
	return o.restore()
}

// Damage whose checksum is right stops the start, or is none; it never panics.
func TestDamagedState(t *testing.T) {
	for _, reply := range []bool{false, true} {
		records := richState(t, reply)
		require.Greater(t, len(records), 20)
		require.NoError(t, reopenWith(t, reply, records, -1, nil))
		kinds := map[string]bool{}
		for i, s := range records {
			kinds[string(s.key[:min(len(s.key), 2)])] = true
			for at := 0; at < len(s.value); at += 1 + at/8 {
				_ = reopenWith(t, reply, records, i, s.value[:at])
				for _, flip := range []byte{1, 0x80, 0xff} {
					other := bytes.Clone(s.value)
					other[at] ^= flip
					_ = reopenWith(t, reply, records, i, other)
				}
			}
			if s.key[0] != 'o' && s.key[0] != 'r' { // messages are the edge's
				require.Error(t, reopenWith(t, reply, records, i, append(bytes.Clone(s.value), 0, 1, 2)), "trailing bytes of %q", s.key)
			}
		}
		for _, kind := range []string{"c/", "p/", "h"} {
			require.True(t, kinds[kind], kind)
		}
	}
}

// Records with a wrong checksum are refused, all of them.
func TestChecksums(t *testing.T) {
	for _, reply := range []bool{false, true} {
		for _, s := range richState(t, reply) {
			var b kv.Batch
			framed := kv.AppendRecord(nil, s.version, s.value)
			framed[len(framed)-1] ^= 1
			b.Put(s.key, framed)
			r := newRig(t, twoDomains, func(c *Config) { c.Flush, c.Reply = !reply, reply })
			require.NoError(t, r.disk.Commit(&b))
			_, err := Open(r.config())
			require.ErrorIs(t, err, kv.ErrCorrupt, "%q", s.key)
		}
	}
}

func FuzzRestore(f *testing.F) {
	records := richState(f, false)
	for i, s := range records {
		f.Add(i, s.value)
	}
	f.Fuzz(func(t *testing.T, index int, value []byte) {
		if index < 0 || index >= len(records) {
			return
		}
		_ = reopenWith(t, false, records, index, value)
	})
}
