package windowing_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

func init() {
	stageMakers["interval_join"] = makeJoin
	stageMakers["watermark_dedupe"] = makeDedupe
}

// makeJoin takes left= and right= (names of sources), key=, lower=, upper=, type=,
// max_matches=, lower_inclusive=, upper_inclusive= and late=.
func makeJoin(t *testing.T, c command, st *windowing.Stage) {
	kind := slices.Index(windowing.JoinTypes[:], c.get("type", "inner"))
	require.GreaterOrEqual(t, kind, 0)
	most, err := strconv.Atoi(c.get("max_matches", "0"))
	require.NoError(t, err)
	key := "this." + c.get("key", "k")
	cfg := windowing.JoinConfig{Name: st.Name, Type: windowing.JoinType(kind),
		Sides: [2]windowing.JoinSide{{Source: c.get("left", "L"), Key: key}, {Source: c.get("right", "R"), Key: key}},
		Lower: scriptDuration(t, c.get("lower", "0s")), Upper: scriptDuration(t, c.get("upper", "0s")),
		ExcludeLower: c.get("lower_inclusive", "true") == "false", ExcludeUpper: c.get("upper_inclusive", "true") == "false",
		MaxMatches: most, PassLate: c.get("late", "drop") == "pass", Codec: scriptCodec{}}
	j := windowing.NewJoin(cfg)
	st.Operator, st.Definition, st.Hold = j, j.Definition(), cfg.Hold()
	st.Binding = &joinBinding{config: cfg}
}

// joinBinding tells the sides by _source.
type joinBinding struct {
	failing
	config windowing.JoinConfig
}

func (b *joinBinding) Extract(rows []windowing.Row) {
	for i := range rows {
		row := &rows[i]
		if row.Flag != windowing.Data {
			continue
		}
		m := row.Message.(*message)
		side := slices.IndexFunc(b.config.Sides[:], func(s windowing.JoinSide) bool { return s.Source == m.get("_source").AsString() })
		row.Args = []agg.Value{agg.Int(int64(side))} // -1 is neither
		if side >= 0 {
			row.Key = m.evaluate(b.config.Sides[side].Key).AppendKey(nil)
		}
	}
}

// Render names the fields left.NAME and right.NAME.
func (b *joinBinding) Render(res *windowing.Result) windowing.Message {
	m := &message{err: res.Err}
	for side, name := range [...]string{"left", "right"} {
		if res.Values[side].IsNull() {
			m.fields = append(m.fields, field{name: name, value: agg.Null()})
			continue
		}
		of, err := scriptCodec{}.Decode([]byte(res.Values[side].AsString()))
		if err != nil {
			panic(err)
		}
		for _, f := range of.(*message).fields {
			if f.name != "_source" {
				m.fields = append(m.fields, field{name: name + "." + f.name, value: f.value})
			}
		}
	}
	return m
}

// scriptCodec keeps the fields of a message.
type scriptCodec struct{}

func (scriptCodec) Encode(b []byte, m windowing.Message) []byte {
	fields := m.(*message).fields
	b = kv.AppendUvarint(b, uint64(len(fields)))
	for _, f := range fields {
		b = f.value.Append(kv.AppendBlob(b, f.name))
	}
	return b
}

func (scriptCodec) Decode(data []byte) (windowing.Message, error) {
	d := kv.NewDecoder(data)
	m := &message{}
	for range d.Count(2) {
		name := d.String()
		if d.Err() != nil {
			return nil, d.Err()
		}
		v, rest, err := agg.DecodeValue(d.Rest())
		if err != nil {
			return nil, err
		}
		m.fields = append(m.fields, field{name: name, value: v})
		d = kv.NewDecoder(rest)
	}
	return m, d.Done()
}
