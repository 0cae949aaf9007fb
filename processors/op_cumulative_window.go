package processors

import (
	"fmt"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/windowing"
)

const (
	kindCumulative = "cumulative_window"
	fieldStep      = "step"
)

func cumulativeSpec() *service.ConfigSpec {
	return service.NewConfigSpec().Beta().Categories("Windowing").
		Summary("Aggregates rows by windows that grow by `step` up to `size`, then start anew: the total of the day so far, every hour.").
		Description("Windows are `[start, start + step)`, `[start, start + 2 * step)` and so on up to `[start, start + size)`; starts are aligned to 1970-01-01T00:00:00Z plus `offset`. It is CUMULATE of Flink SQL." + gridWords + `

A row is applied once, to its step; windows put their steps together when they come out. State grows with the steps that have rows times the groups in each, until the size is full.`).
		Field(sizeField(fieldSize, "The length of the longest window, a multiple of the step.", false).Example("24h")).
		Field(sizeField(fieldStep, "By how much windows grow.", false).Example("1h")).
		Fields(gridFields("size")...).
		Fields(aggregateFields()...).
		Fields(commonFields()...)
}

// parseCumulative reads the configuration of a cumulative window.
func parseCumulative(conf *service.ParsedConfig) (*operator, error) {
	op, err := parseCommon(conf, kindCumulative)
	if err != nil {
		return nil, err
	}
	g, err := parseSteps(conf)
	if err == nil {
		err = op.window(conf, g)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", op.kind, op.name, err)
	}
	return op, nil
}

func parseSteps(conf *service.ParsedConfig) (g grid, err error) {
	if g.zone, err = parseZone(conf); err != nil {
		return g, err
	}
	size, err := parseDuration(conf, 0, fieldSize)
	if err != nil {
		return g, err
	}
	step, err := parseDuration(conf, 0, fieldStep)
	if err != nil {
		return g, err
	}
	offset, err := parseSigned(conf, 0, fieldOffset)
	if err != nil {
		return g, err
	}
	g.assigner, err = windowing.NewCumulative(size, step, offset)
	return g, err
}

func init() { register(kindCumulative, cumulativeSpec(), parseCumulative) }
