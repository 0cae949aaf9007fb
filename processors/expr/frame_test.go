package expr

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// Only what is asked for is evaluated.
func TestNothingIsEvaluatedUnasked(t *testing.T) {
	s := NewSet()
	counted, err := s.Value("counted", `counter().string()`)
	require.NoError(t, err)
	document, err := s.Value("document", `this.a`)
	require.NoError(t, err)
	key, err := s.Bool("when", `@k == "orders"`)
	require.NoError(t, err)
	var f Frame
	s.Eval(messages(`{"a":1}`, `broken`, `{"a":3}`), &f)
	for row := range 3 {
		require.True(t, f.Bool(row, key))
		require.NoError(t, f.Err(row, key))
		require.Equal(t, unread, f.rows[row])
	}
	require.Equal(t, "1", f.Value(2, counted).AsString())
	require.Equal(t, "1", f.Value(2, counted).AsString(), "asked twice, evaluated once")
	require.Equal(t, "2", f.Value(0, counted).AsString())
	require.Equal(t, agg.Int(3), f.Value(2, document))
	require.NoError(t, f.RowErr(0))
	require.ErrorIs(t, f.RowErr(1), ErrDocument)
	require.ErrorIs(t, f.Err(1, document), ErrDocument)
	require.NoError(t, f.RowErr(2))
}

func TestRowErrIsTheMessagesOwnFirst(t *testing.T) {
	s := NewSet()
	_, err := s.Value("field", `this.a`)
	require.NoError(t, err)
	batch := messages(`broken`, `{}`)
	own := errors.New("failed upstream")
	batch[0].SetError(own)
	var f Frame
	s.Eval(batch, &f)
	require.Equal(t, own, f.RowErr(0))
	require.NoError(t, f.RowErr(1))
}

// A payload that nobody reads may be anything.
func TestMetadataNeedsNoDocument(t *testing.T) {
	s := NewSet()
	var slots []Slot
	for _, text := range []string{`@k`, `metadata("k")`, `"orders"`, `(@k)`, `if @k == "orders" { @k }`} {
		slot, err := s.Text("field", text)
		require.NoError(t, err)
		slots = append(slots, slot)
	}
	structured := messages("{\"a\":\"\xff\"}")
	_, err := structured[0].AsStructured()
	require.NoError(t, err)
	for _, batch := range []service.MessageBatch{messages("\xff\x00"), messages("{\"a\":\"\xff\"}"), structured} {
		var f Frame
		s.Eval(batch, &f)
		require.NoError(t, f.RowErr(0))
		for _, slot := range slots {
			require.NoError(t, f.Err(0, slot))
			require.Equal(t, "orders", f.Text(0, slot))
		}
	}
}

// A message whose structured form was changed has other bytes, or none.
func TestStructuredFormCounts(t *testing.T) {
	s := NewSet()
	slot, err := s.Value("field", `this.a`)
	require.NoError(t, err)
	batch := messages(`{"a":1}`, `{"a":1}`, `{"a":1}`)
	v, err := batch[0].AsStructuredMut()
	require.NoError(t, err)
	v.(map[string]any)["a"] = 2
	batch[1].SetStructured(map[string]any{"a": "three"})
	_, err = batch[1].AsBytes()
	require.NoError(t, err)
	batch[2].SetBytes([]byte(`{"a":4}`))
	var f Frame
	s.Eval(batch, &f)
	require.Equal(t, agg.Int(2), f.Value(0, slot))
	require.Equal(t, agg.String("three"), f.Value(1, slot))
	require.Equal(t, agg.Int(4), f.Value(2, slot))
}

// Evaluation leaves messages as they are: those without a structured form keep
// none when only paths are read.
func TestMessagesStayRaw(t *testing.T) {
	s := NewSet()
	slot, err := s.Value("field", `this.a`)
	require.NoError(t, err)
	batch := messages(`{"a":[1]}`)
	var f Frame
	s.Eval(batch, &f)
	require.Equal(t, agg.JSON(`[1]`), f.Value(0, slot))
	require.False(t, batch[0].HasStructured())
	require.True(t, batch[0].HasBytes())
}

// Fields that want the same of the same text share the work, not the name.
func TestFieldsKeepTheirNames(t *testing.T) {
	s := NewSet()
	one, err := s.Bool("one", `this.a.number() > 0 || counter() > 0`)
	require.NoError(t, err)
	two, err := s.Bool("two", `this.a.number() > 0 || counter() > 0`)
	require.NoError(t, err)
	require.Len(t, s.cells, 1)
	var f Frame
	s.Eval(messages(`{}`), &f)
	require.ErrorContains(t, f.Err(0, one), "one: ")
	require.ErrorContains(t, f.Err(0, two), "two: ")
}

func TestFrameIsReused(t *testing.T) {
	var f Frame
	for size := range 5 {
		for _, text := range []string{`this.a`, `(this.a)`, `@n`} {
			s := NewSet()
			slot, err := s.Value("field", text)
			require.NoError(t, err)
			payloads := make([]string, size)
			for i := range payloads {
				payloads[i] = fmt.Sprintf(`{"a":%d}`, 7)
			}
			s.Eval(messages(payloads...), &f)
			for row := range size {
				require.NoError(t, f.Err(row, slot))
				require.Equal(t, agg.Int(7), f.Value(row, slot))
			}
			s.Eval(messages(`broken`), &f)
			if text == `@n` {
				require.NoError(t, f.Err(0, slot))
			} else {
				require.Error(t, f.Err(0, slot))
			}
		}
	}
	f.Reset()
	require.Nil(t, f.batch)
	require.Empty(t, f.errs)
}

// What a Frame hands out must not keep documents alive.
func TestTextsAreCopies(t *testing.T) {
	s := NewSet()
	slot, err := s.Value("field", `this.a`)
	require.NoError(t, err)
	for _, text := range []string{"short", strings.Repeat("long", 100), `esc\taped`} {
		doc := []byte(`{"a":"` + text + `"}`)
		var f Frame
		s.Eval(service.MessageBatch{service.NewMessage(doc)}, &f)
		got := f.Value(0, slot).AsString()
		from := uintptr(unsafe.Pointer(unsafe.SliceData(doc)))
		at := uintptr(unsafe.Pointer(unsafe.StringData(got)))
		require.False(t, at >= from && at < from+uintptr(len(doc)), text)
		require.Equal(t, strings.ReplaceAll(text, `\t`, "\t"), got)
	}
}

func TestRecentTexts(t *testing.T) {
	var r recent
	for i := range 10000 {
		text := strings.Repeat("x", i%70) + fmt.Sprint(i%700)
		require.Equal(t, text, r.keep(text))
	}
	require.Empty(t, r.keep(""))
	one := r.keep("page")
	two := r.keep(string([]byte("page")))
	require.Same(t, unsafe.StringData(one), unsafe.StringData(two))
}

func TestSetServesManyGoroutines(t *testing.T) {
	s := NewSet()
	var slots []Slot
	for _, text := range []string{`this.a`, `this.b.c`, `@k`, `this.a + 1`, `this.a == 1`, `"x"`} {
		slot, err := s.Value("field", text)
		require.NoError(t, err)
		slots = append(slots, slot)
	}
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			var f Frame
			for range 200 {
				s.Eval(messages(fmt.Sprintf(`{"a":%d,"b":{"c":"text"}}`, worker), `broken`), &f)
				if f.Value(0, slots[0]) != agg.Int(int64(worker)) || f.Value(0, slots[3]) != agg.Int(int64(worker)+1) || f.Err(1, slots[1]) == nil {
					t.Error(f.Err(0, slots[0]), f.Err(0, slots[3]))
				}
			}
		})
	}
	group.Wait()
}

// A row of four fields, one of them a text never seen before, costs at most one
// allocation.
func TestAllocations(t *testing.T) {
	batch := orders(t)
	s, slots := fields(t, "%s")
	var f Frame
	evaluate(t, s, &f, slots, batch)
	rows := testing.AllocsPerRun(10, func() {
		clear(f.recent)
		evaluate(t, s, &f, slots, batch)
	}) / batchSize
	require.LessOrEqual(t, rows, 1.1)
}

// TestKeyThatIsNone: a Kafka record without a key has nil bytes for it, which JSON
// shows as null. It is no text: a deduplication would take all of them for one.
func TestKeyThatIsNone(t *testing.T) {
	for _, text := range []string{`@k`, `(@k)`, `metadata("k")`, `root = @k`, `if true { @k }`} {
		set := NewSet()
		slot, err := set.Key("key", text)
		require.NoError(t, err)
		var batch service.MessageBatch
		for _, key := range [][]byte{nil, {}, []byte("a")} {
			m := service.NewMessage([]byte(`{}`))
			m.MetaSetMut("k", key)
			batch = append(batch, m)
		}
		var f Frame
		set.Eval(batch, &f)
		for i, want := range []agg.Value{agg.Null(), agg.String(""), agg.String("a")} {
			got, err := f.Get(i, slot)
			require.NoError(t, err)
			require.Equal(t, want, got, "%s of message %d", text, i)
		}
	}
}

// TestKeyThatIsNoneInConditions leaves comparisons to Bloblang, for which nil bytes
// are an empty text.
func TestKeyThatIsNoneInConditions(t *testing.T) {
	for _, text := range []string{`@k == ""`, `@k != ""`, `@k < "a"`, `@k >= "a"`, `@k == "a"`} {
		set := NewSet()
		direct, err := set.Bool("when", text)
		require.NoError(t, err)
		bloblang, err := set.Bool("when", "("+text+") && true")
		require.NoError(t, err)
		for _, key := range [][]byte{nil, {}, []byte("a")} {
			m := service.NewMessage([]byte(`{}`))
			m.MetaSetMut("k", key)
			var f Frame
			set.Eval(service.MessageBatch{m}, &f)
			require.NoError(t, f.Err(0, direct))
			require.NoError(t, f.Err(0, bloblang))
			require.Equal(t, f.Bool(0, bloblang), f.Bool(0, direct), "%s of %q", text, key)
		}
	}
}
