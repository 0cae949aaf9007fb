package expr

import (
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// TestKeyIsTheValue: a key is the value of the expression, of raw and of structured
// documents, and a text that was kept does not change with the documents.
func TestKeyIsTheValue(t *testing.T) {
	set := NewSet()
	key, err := set.Key("group_by.k", "this.k")
	require.NoError(t, err)
	value, err := set.Value("aggregates", "this.k")
	require.NoError(t, err)
	var frame Frame
	for _, doc := range []string{
		`{"k":"plain"}`, `{"k":"esc\u0061ped\n"}`, `{"k":""}`, `{"k":null}`, `{}`, `{"k":1.0}`, `{"k":1}`, `{"k":true}`,
		`{"k":12345678901234567890}`, `{"k":{"b":1,"a":[2]}}`, `{"k":"ü"}`, `{"k":1e999}`, `{"k":"a","k":"b"}`,
	} {
		structured := service.NewMessage([]byte(doc))
		_, err := structured.AsStructured()
		require.NoError(t, err)
		batch := service.MessageBatch{service.NewMessage([]byte(doc)), structured}
		set.Eval(batch, &frame)
		for row := range batch {
			want := frame.Err(row, value)
			if want == nil {
				require.NoError(t, frame.Err(row, key))
			} else {
				require.Error(t, frame.Err(row, key))
			}
			require.Equal(t, frame.Value(row, value), frame.Value(row, key), doc)
		}
	}
	bytes := []byte(`{"k":"first"}`)
	set.Eval(service.MessageBatch{service.NewMessage(bytes)}, &frame)
	kept, encoded := frame.Value(0, value), frame.Value(0, key).AppendKey(nil)
	copy(bytes, `{"k":"other"}`)
	require.Equal(t, "first", kept.AsString())
	require.Equal(t, agg.String("first").AppendKey(nil), encoded)
}

// TestCompositeKeysKeepDigits: neighbours beyond int64 are different keys, also inside
// lists and objects, which Bloblang or the reader may have made.
func TestCompositeKeysKeepDigits(t *testing.T) {
	set := NewSet()
	list, err := set.Key("key", "[this.t, this.id]")
	require.NoError(t, err)
	object, err := set.Key("key", "this")
	require.NoError(t, err)
	unsigned := service.NewMessage(nil)
	unsigned.SetStructured(map[string]any{"t": "a", "id": uint64(18446744073709551615)})
	batch := service.MessageBatch{
		service.NewMessage([]byte(`{"t":"a","id":18446744073709551614}`)),
		service.NewMessage([]byte(`{"t":"a","id":18446744073709551615}`)), unsigned,
	}
	var frame Frame
	set.Eval(batch, &frame)
	for row, id := range []string{"18446744073709551614", "18446744073709551615", "18446744073709551615"} {
		require.Equal(t, `["a",`+id+`]`, string(frame.Value(row, list).AppendJSON(nil)))
		require.Equal(t, `{"id":`+id+`,"t":"a"}`, string(frame.Value(row, object).AppendJSON(nil)))
	}
}
