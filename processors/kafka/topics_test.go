package kafka

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTopicForms(t *testing.T) {
	cases := []struct {
		list       []string
		topics     []string
		partitions map[string]map[int32]int64
	}{
		{list: nil},
		{list: []string{"", " , "}},
		{list: []string{"a"}, topics: []string{"a"}},
		{list: []string{" a ", "b,c", "a"}, topics: []string{"a", "b", "c"}},
		{list: []string{"a:0"}, partitions: map[string]map[int32]int64{"a": {0: fromStart}}},
		{list: []string{"a:0-2", "a:5"}, partitions: map[string]map[int32]int64{"a": {0: fromStart, 1: fromStart, 2: fromStart, 5: fromStart}}},
		{list: []string{"a:3-3"}, partitions: map[string]map[int32]int64{"a": {3: fromStart}}},
		{list: []string{"a:0:1234,b:1:0"}, partitions: map[string]map[int32]int64{"a": {0: 1234}, "b": {1: 0}}},
		{list: []string{"a:0,a:0"}, partitions: map[string]map[int32]int64{"a": {0: fromStart}}},
		{list: []string{" a : 1 : 2 "}, partitions: map[string]map[int32]int64{"a": {1: 2}}},
		{list: []string{"a:2147483647"}, partitions: map[string]map[int32]int64{"a": {math.MaxInt32: fromStart}}},
		{list: []string{"a:0:9223372036854775807"}, partitions: map[string]map[int32]int64{"a": {0: math.MaxInt64}}},
	}
	for _, c := range cases {
		l, err := parseTopics(c.list)
		require.NoError(t, err, "%q", c.list)
		require.Equal(t, topicList{topics: c.topics, partitions: c.partitions}, l, "%q", c.list)
	}
}

func TestTopicMistakes(t *testing.T) {
	cases := map[string]string{
		":0":                      "no topic",
		"a:":                      "not a partition",
		"a:-1":                    "not a partition",
		"a:x":                     "not a partition",
		"a:2147483648":            "not a partition",
		"a:5-3":                   "backwards",
		"a:0-":                    "not a partition",
		"a:0-2147483647":          "more than",
		"a:0-100000":              "more than",
		"a:0:-1":                  "not an offset",
		"a:0:":                    "not an offset",
		"a:0:1:2":                 "not an offset",
		"a:0:9223372036854775808": "not an offset",
		"a:0-1:5":                 "one partition only",
		"a:0:1,a:0:2":             "twice",
		"a:0,a:0:2":               "twice",
		"a,b:0":                   "mixed",
	}
	for item, want := range cases {
		_, err := parseTopics([]string{item})
		require.ErrorContains(t, err, want, "%q", item)
	}
}

// FuzzTopics wants what was understood to be written and understood again.
func FuzzTopics(f *testing.F) {
	for _, seed := range []string{"a", "a:0", "a:0-5", "a:0:1234", "a,b:1", ":", "a:0:-1", "a:4-2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, item string) {
		l, err := parseTopics([]string{item})
		if err != nil {
			return
		}
		var again []string
		again = append(again, l.topics...)
		for topic, partitions := range l.partitions {
			for p, at := range partitions {
				require.GreaterOrEqual(t, p, int32(0))
				if at == fromStart {
					again = append(again, fmt.Sprintf("%s:%d", topic, p))
				} else {
					again = append(again, fmt.Sprintf("%s:%d:%d", topic, p, at))
				}
			}
		}
		twice, err := parseTopics(again)
		require.NoError(t, err, "%q became %q", item, strings.Join(again, " "))
		require.Equal(t, l, twice)
	})
}
