package processors

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/host"
)

// renderedRow is row i of a close: three windows, groups in ascending order.
func renderedRow(i int) *rendered {
	at := watermark.Time(1704067200) * watermark.Time(time.Second)
	start := at.Add(time.Duration(i/4) * time.Minute)
	mark := &windowing.Mark{Operator: "w", Timing: windowing.OnTime, Revision: int64(i%3 + 1), Spanned: true,
		RowKey: fmt.Sprintf(`["w",["/item/%d"],"2024-01-01T00:0%d:00Z"]`, 98+i, i/4),
		Start:  start, End: start.Add(time.Minute), EventTime: start.Add(time.Minute - 1), Watermark: at.Add(time.Hour)}
	return &rendered{payload: fmt.Appendf(nil, `{"page":"/item/%d","orders":%d}`, 98+i, i*i), mark: mark}
}

// packed writes rows one behind the other, and gives what is read of that.
func packed(t testing.TB, rows []windowing.Message) (again []windowing.Message, size int) {
	t.Helper()
	e := edge{texts: &markTexts{}}
	var before, read windowing.Message
	for _, m := range rows {
		p := host.Parcel{Message: m}
		if r, ok := m.(*rendered); ok {
			p.Key, p.Revision = r.mark.RowKey, r.mark.Revision
		} else {
			p.Key, p.Revision = "k", 7
		}
		data := e.Pack(nil, p, before)
		size += len(data)
		got, err := e.Unpack(data, read)
		require.NoError(t, err)
		require.Equal(t, p.Key, got.Key)
		require.Equal(t, p.Revision, got.Revision)
		for n := range data {
			_, err := e.Unpack(data[:n], read)
			require.Error(t, err, "cut to %d of %d bytes", n, len(data))
		}
		_, err = e.Unpack(append(data, 0), read)
		require.Error(t, err)
		again = append(again, got.Message)
		before, read = m, got.Message
	}
	return again, size
}

// TestPackedRows: what is read is what was written, whatever stood before it.
func TestPackedRows(t *testing.T) {
	var rows []windowing.Message
	for i := range 12 {
		rows = append(rows, renderedRow(i))
	}
	again, size := packed(t, rows)
	require.Equal(t, rows, again)
	require.Less(t, size, 12*50, "neighbours share most of what they are")

	bare := &rendered{payload: []byte{}, mark: &windowing.Mark{Watermark: watermark.Unset}}
	odd := &rendered{payload: []byte("\xff"), mark: &windowing.Mark{Operator: "é", Timing: windowing.Deleted, RowKey: "k", Revision: -1,
		Start: watermark.Min, End: watermark.EndOfTime, EventTime: watermark.Max, Watermark: watermark.Unset}}
	all := []windowing.Message{bare, odd, odd, bare, renderedRow(0)}
	again, _ = packed(t, all)
	require.Equal(t, all, again)

	m := service.NewMessage([]byte("x"))
	m.MetaSetMut("k", int64(1))
	m.SetError(errors.New("e"))
	again, _ = packed(t, []windowing.Message{rows[0], m, rows[1]})
	require.Equal(t, rows[1], again[2])
	require.Equal(t, metaOf(m), metaOf(again[1].(*service.Message)))
	require.EqualError(t, again[1].(*service.Message).GetError(), "e")
}

// TestDifferences: any two texts.
func TestDifferences(t *testing.T) {
	for range 20_000 {
		text := func() string {
			b := make([]byte, rand.IntN(20))
			for i := range b {
				b[i] = byte('a' + rand.IntN(2))
			}
			return strings.Repeat("=", 8*rand.IntN(2)) + string(b)
		}
		before, after := text(), text()
		data := appendDifference(nil, before, after)
		d := kv.NewDecoder(data)
		require.Equal(t, after, string(readDifference(d, before)), "behind %q", before)
		require.NoError(t, d.Done())
	}
	for _, data := range [][]byte{{4, 0, 0}, {0, 4, 0}, {2, 2, 0}, kv.AppendBlob(kv.AppendUvarint([]byte{2}, 1<<64-1), "")} {
		d := kv.NewDecoder(data)
		readDifference(d, "abc")
		require.ErrorIs(t, d.Err(), kv.ErrCorrupt)
	}
}

func FuzzUnpack(f *testing.F) {
	first := renderedRow(0)
	f.Add(edge{}.Pack(nil, host.Parcel{Message: first}, nil), false)
	f.Add(edge{}.Pack(nil, host.Parcel{Message: renderedRow(1)}, first), true)
	f.Add(edge{}.Pack(nil, host.Parcel{Message: service.NewMessage([]byte("x"))}, first), true)
	f.Fuzz(func(t *testing.T, data []byte, behind bool) {
		var before windowing.Message
		if behind {
			before = first
		}
		p, err := edge{}.Unpack(data, before)
		r, ok := p.Message.(*rendered)
		if err != nil || !ok {
			return
		}
		again, err := edge{}.Unpack(edge{}.Pack(nil, p, before), before)
		require.NoError(t, err)
		require.Equal(t, r, again.Message)
	})
}

// TestMintedMessages: a row leaves as the message that Exit makes of one, each time
// that it is handed over, whatever became of it the time before.
func TestMintedMessages(t *testing.T) {
	d := &host.Delivery{}
	var want []*service.Message
	for i := range 12 {
		r := renderedRow(i)
		if i == 5 {
			r.mark.RowKey = ""
		}
		m := edge{}.Exit(&windowing.Row{Message: service.NewMessage(r.payload), Mark: r.mark}).(*service.Message)
		want = append(want, m)
		if i == 7 {
			d.Messages = append(d.Messages, m)
			continue
		}
		require.Same(t, r, edge{}.Exit(&windowing.Row{Message: r, Mark: r.mark}))
		d.Messages = append(d.Messages, r)
	}
	for range 3 {
		for i, m := range mint(d) {
			require.Equal(t, metaOf(want[i]), metaOf(m), i)
			require.Equal(t, payload(want[i]), payload(m))
			require.NoError(t, m.GetError())
			at, ok := placeIn(d, m.Copy().WithContext(t.Context()))
			require.False(t, ok, at)
			at, ok = placeIn(d, m.Copy())
			require.True(t, ok)
			require.Equal(t, i, at)
			_, ok = placeIn(&host.Delivery{}, m)
			require.False(t, ok)

			m.MetaSetMut(metaTiming, "forged")
			m.MetaDelete(metaRowKey)
			m.SetError(errors.New("refused"))
			v, err := m.AsStructuredMut()
			require.NoError(t, err)
			v.(map[string]any)["page"] = "changed"
			m.SetStructuredMut(v)
		}
	}
}

// TestRowsWithErrors: a row with an error leaves as a message.
func TestRowsWithErrors(t *testing.T) {
	r := renderedRow(0)
	m, ok := edge{}.Exit(&windowing.Row{Message: r, Mark: r.mark, Err: errors.New("overflow"), Flag: windowing.Invalid}).(*service.Message)
	require.True(t, ok)
	require.EqualError(t, m.GetError(), "overflow")
	require.Equal(t, metaOf(r.message(nil)), metaOf(m))
	require.Equal(t, r.payload, payload(m))
}

// TestRowsAsMessages: a row is written as its message is.
func TestRowsAsMessages(t *testing.T) {
	odd := &rendered{payload: []byte("x"), mark: &windowing.Mark{Operator: "é", Timing: windowing.Early, Watermark: watermark.Unset, EventTime: watermark.EndOfTime}}
	for _, r := range []*rendered{renderedRow(0), renderedRow(7), odd} {
		e := edge{texts: &markTexts{}}
		m, err := e.Decode(e.Append(nil, r))
		require.NoError(t, err)
		require.Equal(t, metaOf(r.message(nil)), metaOf(m.(*service.Message)))
		require.Equal(t, r.payload, payload(m.(*service.Message)))
		require.Len(t, e.Append(nil, r), len(e.Append(nil, r.message(e.texts))))
	}
}

// TestKeptRows: a row that stays holds nothing of its neighbours.
func TestKeptRows(t *testing.T) {
	r := renderedRow(3)
	kept := edge{}.Keep(r).(*rendered)
	require.Equal(t, r, kept)
	require.NotSame(t, r.mark, kept.mark)
	require.NotSame(t, &r.payload[0], &kept.payload[0])
	m := service.NewMessage(nil)
	require.Same(t, m, edge{}.Keep(m))
}

// TestRoomOfRows: no row reaches into another one.
func TestRoomOfRows(t *testing.T) {
	var room renderedRoom
	var rows []*rendered
	size := func(i int) int { return i * 37 % (renderedBytes / 4) }
	for i := range 1000 {
		rows = append(rows, room.add([]byte(strings.Repeat(string(rune('a'+i%26)), size(i)))))
	}
	for i, r := range rows {
		require.Equal(t, strings.Repeat(string(rune('a'+i%26)), size(i)), string(r.payload))
		require.Len(t, r.payload, cap(r.payload))
	}
}

func BenchmarkMint(b *testing.B) {
	d := &host.Delivery{}
	for i := range 1000 {
		r := renderedRow(i)
		r.mark.Start, r.mark.End, r.mark.EventTime = 0, 1, 0
		d.Messages = append(d.Messages, r)
	}
	b.ReportAllocs()
	for b.Loop() {
		mint(d)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/row")
}

func BenchmarkPack(b *testing.B) {
	e, before, row := edge{}, renderedRow(0), renderedRow(1)
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		out = e.Pack(out[:0], host.Parcel{Message: row}, before)
	}
	b.ReportMetric(float64(len(out)), "bytes")
}
