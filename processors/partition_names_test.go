package processors

import (
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/processors/expr"
	"github.com/connect-windowed/connect-windowed/windowing"
)

// The name of a partition does not depend on which one was asked for before.
func TestPartitionNames(t *testing.T) {
	p, err := newProgram(compileWatermark([]sourceConfig{{}}))
	require.NoError(t, err)
	cases := []struct {
		meta map[string]any
		want string
	}{
		{map[string]any{"kafka_topic": "t", "kafka_partition": 0}, "t/0"},
		{map[string]any{"kafka_topic": "t", "kafka_partition": 1}, "t/1"},
		{map[string]any{"kafka_topic": "u", "kafka_partition": 1}, "u/1"},
		{map[string]any{"kafka_topic": "", "kafka_partition": -1}, "/-1"},
		{map[string]any{"kafka_topic": "t", "kafka_partition": int64(1)}, "t/1"},
		{map[string]any{"kafka_topic": "t", "kafka_partition": "1"}, "t/1"},
		{map[string]any{"kafka_topic": "t"}, ""},
		{map[string]any{"kafka_topic": "t", "kafka_partition": nil}, ""},
		{map[string]any{"kafka_topic": nil, "kafka_partition": 1}, ""},
		{map[string]any{"kafka_partition": 1}, ""},
		{map[string]any{"kafka_topic": "\xff", "kafka_partition": 1}, ""},
		{map[string]any{"kafka_topic": map[string]any{"a": 1}, "kafka_partition": []any{1}}, "map[a:1]/[1]"},
		{map[string]any{}, ""},
	}
	var rows []windowing.Row
	var want []string
	for _, one := range cases {
		for _, other := range cases {
			for _, c := range []struct {
				meta map[string]any
				want string
			}{one, other, other, one} {
				m := service.NewMessage([]byte(`{}`))
				for key, value := range c.meta {
					m.MetaSetMut(key, value)
				}
				rows, want = append(rows, windowing.Row{Message: m, Time: 1}), append(want, c.want)
			}
		}
	}
	for range 2 {
		p.extract(rows)
		for i := range rows {
			require.NoError(t, rows[i].Err)
			require.Equal(t, want[i], rows[i].Partition, i)
		}
	}
}

// BenchmarkPartition is what the name of a Kafka partition costs a row, in runs of one
// partition and not.
func BenchmarkPartition(b *testing.B) {
	for name, run := range map[string]int{"runs": 100, "mixed": 1} {
		b.Run(name, func(b *testing.B) {
			r := &watermarkReader{}
			set := expr.NewSet()
			var err error
			r.topic, err = set.Value("partition", "@kafka_topic")
			require.NoError(b, err)
			r.number, err = set.Value("partition", "@kafka_partition")
			require.NoError(b, err)
			s := &scratch{}
			for i := range 500 {
				m := service.NewMessage(nil)
				m.MetaSetMut("kafka_topic", "orders")
				m.MetaSetMut("kafka_partition", i/run%8)
				s.batch = append(s.batch, m)
			}
			b.ReportAllocs()
			for i := 0; i < b.N; i++ {
				if i%500 == 0 {
					set.Eval(s.batch, &s.Frame)
				}
				r.kafka(s, i%500)
			}
		})
	}
}
