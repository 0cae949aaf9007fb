package processors

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// Fields of operators that aggregate.
const (
	fieldGroupBy    = "group_by"
	fieldAggregates = "aggregates"
)

// Fields of a result row that are not the user's to name.
var reserved = []string{"window_start", "window_end"}

// aggregateFields are the fields of operators that aggregate.
func aggregateFields() []*service.ConfigField {
	return []*service.ConfigField{
		service.NewStringMapField(fieldGroupBy).Default(map[string]any{}).
			Description("Output fields and the Bloblang expressions that make the group of a row. Null and missing are one group with the key null; 1 and 1.0 are one group, \"1\" is another. Without it there is one group.").
			Example(map[string]any{"page": "this.page"}),
		service.NewStringMapField(fieldAggregates).
			Description("Output fields and their aggregates, each `function(expression, options)`. Functions: " + functionNames() + ". A `where: <condition>` option leaves rows out.").
			Example(map[string]any{"orders": "count()", "total": "sum(this.amount)"}),
		optionField(fieldLate, "drop", "pass").Default("drop").
			Description("What becomes of late rows: they are counted, and with `pass` go on with the metadata `windowed_late_operator` and `windowed_late_by`."),
	}
}

func functionNames() string {
	var names []string
	for _, f := range agg.Functions() {
		names = append(names, "`"+f.Name+"`")
	}
	return strings.Join(names, ", ")
}

func parseGroups(conf *service.ParsedConfig) (groups []windowing.GroupField, err error) {
	texts, err := conf.FieldStringMap(fieldGroupBy)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if err := checkField(fieldGroupBy, name, texts[name]); err != nil {
			return nil, err
		}
		groups = append(groups, windowing.GroupField{Name: name, Expr: texts[name]})
	}
	return groups, nil
}

func parseAggregates(conf *service.ParsedConfig, groups []windowing.GroupField) (list []windowing.Aggregate, err error) {
	texts, err := conf.FieldStringMap(fieldAggregates)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if err := checkField(fieldAggregates, name, texts[name]); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(groups, func(g windowing.GroupField) bool { return g.Name == name }) {
			return nil, fmt.Errorf("aggregates.%s: group_by has an output field of that name: rename one of them", name)
		}
		call, err := agg.Parse(texts[name])
		if err != nil {
			return nil, fmt.Errorf("aggregates.%s: %w", name, err)
		}
		if err := bindReducer(call); err != nil {
			return nil, fmt.Errorf("aggregates.%s: %w", name, err)
		}
		list = append(list, windowing.Aggregate{Name: name, Call: call})
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("aggregates: there is none: name at least one output field, such as `n: count()`")
	}
	return list, nil
}

// checkField refuses output fields that cannot be.
func checkField(field, name, text string) error {
	switch {
	case name == "":
		return fmt.Errorf("%s: an output field must have a name", field)
	case slices.Contains(reserved, name):
		return fmt.Errorf("%s.%s: every result row has a field of that name already: choose another", field, name)
	case strings.TrimSpace(text) == "":
		return fmt.Errorf("%s.%s: must not be empty", field, name)
	}
	return nil
}
