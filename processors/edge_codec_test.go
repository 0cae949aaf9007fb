package processors

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/host"
)

// metaOf gives all metadata of a message.
func metaOf(m *service.Message) map[string]any {
	all := map[string]any{}
	_ = m.MetaWalkMut(func(key string, value any) error { all[key] = value; return nil })
	return all
}

// reread writes a message and reads it back.
func reread(t testing.TB, e edge, m *service.Message) *service.Message {
	t.Helper()
	again, err := e.Decode(e.Append(nil, m))
	require.NoError(t, err)
	return again.(*service.Message)
}

func TestMetadataKeepsItsTypes(t *testing.T) {
	odd := time.Date(1800, 1, 1, 0, 0, 0, 123456789, time.FixedZone("LMT", 9*60+21))
	cases := map[string]struct{ in, out any }{
		"null":         {nil, nil},
		"text":         {"a", "a"},
		"empty text":   {"", ""},
		"no UTF-8":     {"\xff\x00", "\xff\x00"},
		"bytes":        {[]byte{0, 255}, []byte{0, 255}},
		"empty bytes":  {[]byte{}, []byte{}},
		"true":         {true, true},
		"false":        {false, false},
		"int":          {7, 7},
		"int min":      {math.MinInt, math.MinInt},
		"int64":        {int64(math.MaxInt64), int64(math.MaxInt64)},
		"int32":        {int32(-3), int64(-3)},
		"uint64":       {uint64(math.MaxUint64), uint64(math.MaxUint64)},
		"uint32":       {uint32(3), uint64(3)},
		"float":        {1.5, 1.5},
		"zero":         {math.Copysign(0, -1), math.Copysign(0, -1)},
		"infinite":     {math.Inf(-1), math.Inf(-1)},
		"float32":      {float32(0.5), 0.5},
		"number":       {json.Number("12345678901234567890.10"), json.Number("12345678901234567890.10")},
		"time":         {time.Unix(1, 2).UTC(), time.Unix(1, 2).UTC()},
		"odd zone":     {odd, odd},
		"object":       {map[string]any{"a": []any{int64(9007199254740993), nil, "x"}}, map[string]any{"a": []any{json.Number("9007199254740993"), nil, "x"}}},
		"list":         {[]any{true}, []any{true}},
		"not for JSON": {math.NaN, "0x"},
	}
	m := service.NewMessage(nil)
	for name, c := range cases {
		m.MetaSetMut(name, c.in)
	}
	got := metaOf(reread(t, edge{}, m))
	require.Len(t, got, len(cases))
	for name, c := range cases {
		switch want := c.out.(type) {
		case time.Time:
			require.True(t, want.Equal(got[name].(time.Time)), name)
			require.Equal(t, want.Format(time.RFC3339Nano), got[name].(time.Time).Format(time.RFC3339Nano), name)
		case float64:
			require.Equal(t, math.Float64bits(want), math.Float64bits(got[name].(float64)), name)
		default:
			if name == "not for JSON" { // better its text than nothing
				require.Contains(t, got[name], c.out)
				continue
			}
			require.Equal(t, c.out, got[name], name)
		}
	}
	nan := service.NewMessage(nil)
	nan.MetaSetMut("n", math.NaN())
	require.True(t, math.IsNaN(metaOf(reread(t, edge{}, nan))["n"].(float64)))
}

func TestPayloadAndErrorOfTheOutbox(t *testing.T) {
	for _, payload := range [][]byte{nil, {}, []byte("a"), []byte("\xff\x00 not JSON"), make([]byte, 1<<20)} {
		for _, fault := range []error{nil, errors.New(""), errors.New("broken: \xff")} {
			m := service.NewMessage(payload)
			m.SetError(fault)
			again := reread(t, edge{}, m)
			b, err := again.AsBytes()
			require.NoError(t, err)
			require.Equal(t, string(payload), string(b))
			if fault == nil {
				require.NoError(t, again.GetError())
			} else {
				require.EqualError(t, again.GetError(), fault.Error())
			}
		}
	}
	m := service.NewMessage(nil)
	m.SetStructured(map[string]any{"b": 1, "a": "<é>"})
	b, err := reread(t, edge{}, m).AsBytes()
	require.NoError(t, err)
	require.Equal(t, `{"a":"<é>","b":1}`, string(b))
}

// carriedMessage is a message on its way between operators on their own.
func carriedMessage() *service.Message {
	m := service.NewMessage([]byte(`{"a":1}`))
	m.MetaSetMut("k", "v")
	return carry(m, &carried{
		row:  windowing.Row{Time: 123, Source: 1, Flag: windowing.Late},
		pair: &pair{late: watermark.Unset, close: watermark.EndOfTime, now: -5, of: &origin{sources: []string{"", "payments"}, delay: 7}, revised: "w"},
		at:   host.Position{Partition: "tumbling_window w", Offset: math.MaxInt64, Known: true},
	})
}

func TestPairsOfTheReplyLog(t *testing.T) {
	m := carriedMessage()
	want := carriedBy(m)
	got := carriedBy(reread(t, edge{pairs: true}, m))
	require.NotNil(t, got)
	require.Equal(t, want.pair, got.pair)
	require.Equal(t, want.row, got.row)
	require.Equal(t, want.at, got.at)
	require.Nil(t, carriedBy(reread(t, edge{}, m)), "a host keeps to itself what messages carry")
	inner := carry(service.NewMessage(nil), &carried{inner: true})
	require.Nil(t, carriedBy(reread(t, edge{pairs: true}, inner)))
}

func TestDecodeRejectsDamage(t *testing.T) {
	m := carriedMessage()
	for name, value := range map[string]any{"s": "x", "b": []byte("y"), "t": time.Unix(1, 2), "j": []any{1}, "n": json.Number("1"), "f": 1.5} {
		m.MetaSetMut(name, value)
	}
	m.SetError(errors.New("e"))
	e := edge{pairs: true}
	whole := e.Append(nil, m)
	for n := range whole {
		_, err := e.Decode(whole[:n])
		require.Error(t, err, "cut to %d of %d bytes", n, len(whole))
	}
	_, err := e.Decode(append(whole, 0))
	require.ErrorIs(t, err, kv.ErrCorrupt)

	number := func(name string) byte { return byte(shortOf(name).number) }
	body := func(meta ...byte) []byte { return append([]byte{1, 'x', 0}, meta...) }
	for name, data := range map[string][]byte{
		"empty":                   {},
		"truth value of error":    {0, 2},
		"too many keys":           body(100),
		"unknown kind":            body(1, 0, 1, 'k', kindInstant+1, 0),
		"kind after the last":     body(1, 0, 1, 'k', 255, 0),
		"no JSON":                 body(1, 0, 1, 'k', kindJSON, 1, '{', 0),
		"two documents":           body(1, 0, 1, 'k', kindJSON, 3, '1', ' ', '2', 0),
		"no time":                 body(1, 0, 1, 'k', kindTime, 1, 9, 0),
		"truth value of metadata": body(1, 0, 1, 'k', kindBool, 2, 0),
		"number of no name":       body(1, byte(len(shortNames)), kindNull, 0),
		"instant of no time":      body(1, number(metaTiming), kindInstant, 2, 0),
		"row id under any name":   body(1, 0, 1, 'k', kindRowID, 0),
		"row id of no row":        body(1, number(metaRowID), kindRowID, 0),
		"row id of no revision":   body(2, number(metaRowID), kindRowID, number(metaRowKey), kindString, 2, '[', ']', 0),
		"flag out of range":       body(0, 1, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0),
		"source out of range":     append(kv.AppendVarint(body(0, 1, 0, 0, 0, 0), math.MaxInt32+1), 0, 0, 0, 0, 0, 0),
	} {
		_, err := e.Decode(data)
		require.Error(t, err, name)
	}
	_, err = e.Decode(body(1, 0, 3, 'k', 'e', 'y', 255, 0))
	require.ErrorContains(t, err, `metadata "key"`)
}

// FuzzDecode: whatever the bytes are, they are refused or stand for a message that
// is written and read again as the same.
func FuzzDecode(f *testing.F) {
	f.Add(edge{pairs: true}.Append(nil, carriedMessage()))
	m := service.NewMessage([]byte("a"))
	m.SetError(errors.New("e"))
	for name, value := range map[string]any{"s": "x", "b": []byte("y"), "t": time.Unix(1, 2), "j": map[string]any{"a": 1.5}, "n": json.Number("1"), "f": 1.5, "i": 1, "u": uint64(1), "0": nil, "?": true} {
		m.MetaSetMut(name, value)
	}
	f.Add(edge{}.Append(nil, m))
	f.Add(edge{}.Append(nil, markedMessage(edge{})))
	f.Fuzz(func(t *testing.T, data []byte) {
		e := edge{pairs: true}
		first, err := e.Decode(data)
		if err != nil {
			return
		}
		m := first.(*service.Message)
		again := reread(t, e, m)
		require.Equal(t, payload(m), payload(again))
		require.Equal(t, m.GetError() == nil, again.GetError() == nil)
		require.Equal(t, carriedBy(m) == nil, carriedBy(again) == nil)
		before, after := metaOf(m), metaOf(again)
		require.Len(t, after, len(before))
		for key, value := range before {
			require.Equal(t, appendMeta(nil, value), appendMeta(nil, after[key]), key)
		}
	})
}

// markedMessage is a row of a window as it leaves.
func markedMessage(e edge) *service.Message {
	m := service.NewMessage([]byte(`{"window_start":"2024-01-01T00:00:00Z","window_end":"2024-01-01T00:05:00Z","page":"/a","orders":3}`))
	at := watermark.Time(1704067200) * watermark.Time(time.Second)
	mark := &windowing.Mark{Operator: "tumbling_window", RowKey: `["tumbling_window",["/a"],"2024-01-01T00:00:00Z","2024-01-01T00:05:00Z"]`,
		Revision: 12, Timing: windowing.OnTime, Spanned: true, Start: at, End: at.Add(5 * time.Minute), EventTime: at.Add(5*time.Minute - 1), Watermark: at.Add(6 * time.Minute)}
	return e.Exit(&windowing.Row{Message: m, Mark: mark}).(*service.Message)
}

// TestShortMetadata: what is written in few bytes is read as it was, also where it
// is not what it mostly is.
func TestShortMetadata(t *testing.T) {
	e := edge{texts: &markTexts{}}
	m := markedMessage(e)
	want := metaOf(m)
	require.Len(t, want, 9)
	require.Equal(t, want, metaOf(reread(t, e, m)))
	require.Equal(t, want, metaOf(reread(t, edge{}, m)), "times whose numbers are not known")
	require.Less(t, len(e.Append(nil, m)), 300)

	for key, value := range map[string]any{
		metaRowID: "another", metaRevision: int64(3), metaRowKey: `["x"]`, metaStart: "yesterday", metaEventTime: 7, metaTiming: nil,
	} {
		odd := m.Copy()
		odd.MetaSetMut(key, value)
		require.Equal(t, metaOf(odd), metaOf(reread(t, e, odd)), key)
	}
	for _, key := range []string{metaRowKey, metaRevision} {
		odd := m.Copy()
		odd.MetaDelete(key)
		require.Equal(t, metaOf(odd), metaOf(reread(t, e, odd)), "without %s", key)
	}
}

func BenchmarkEdgeAppend(b *testing.B) {
	e := edge{texts: &markTexts{}}
	m := markedMessage(e)
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		out = e.Append(out[:0], m)
	}
	b.ReportMetric(float64(len(out)), "bytes")
}

func BenchmarkEdgeDecode(b *testing.B) {
	m := service.NewMessage([]byte(`{"window_start":"2024-01-01T00:00:00Z","window_end":"2024-01-01T00:05:00Z","page":"/a","orders":3}`))
	markMessage(m, &windowing.Mark{Operator: "tumbling_window", RowKey: `["tumbling_window",["/a"],"s","e"]`, Revision: 1, Timing: windowing.OnTime, Spanned: true}, nil)
	data := edge{}.Append(nil, m)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (edge{}).Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}

// TestManyMetadataKeys: their number takes more than a byte.
func TestManyMetadataKeys(t *testing.T) {
	for _, n := range []int{0, 1, 127, 128, 129, 20000} {
		m := service.NewMessage([]byte("x"))
		for i := range n {
			m.MetaSetMut(fmt.Sprint("key", i), int64(i))
		}
		got := metaOf(reread(t, edge{}, m))
		require.Len(t, got, n)
		for i := range n {
			require.Equal(t, int64(i), got[fmt.Sprint("key", i)])
		}
	}
}

// TestMarksOfNeighbours: what is kept from the row before is what is written anew.
func TestMarksOfNeighbours(t *testing.T) {
	e, bare := edge{texts: &markTexts{}}, edge{}
	for i := range 64 {
		mark := &windowing.Mark{Operator: fmt.Sprint("op", i/32), Timing: windowing.OnTime, RowKey: `["k"]`, Revision: 1, Spanned: i%2 == 0,
			Start: watermark.Time(i / 4), End: watermark.EndOfTime, EventTime: watermark.Time(i / 8), Watermark: watermark.Unset + watermark.Time(i%3)}
		exit := func(e edge) map[string]any {
			m := e.Exit(&windowing.Row{Message: service.NewMessage(nil), Mark: mark})
			return metaOf(m.(*service.Message))
		}
		require.Equal(t, exit(bare), exit(e))
	}
}
