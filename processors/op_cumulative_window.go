package processors

import (
	"fmt"
	"time"

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

A size of the calendar starts at the beginning of the local day, week, month, quarter or year. Steps of the calendar end where days or months do: ` + "`size: 1mo, step: 1d`" + ` is the total of the month so far, every day. Steps that are durations count from the start, and the last one ends with the size: ` + "`size: 1d, step: 1h`" + ` has 23 steps, or 25, on a day when the clock is changed; of ` + "`step: 6h`" + ` the last has five hours then, or there is a fifth one of an hour.

A row is applied once, to its step; windows put their steps together when they come out. State grows with the steps that have rows times the groups in each, until the size is full.`).
		Field(sizeField(fieldSize, "The length of the longest window, a multiple of the step.", true).Example("24h").Example("1d").Example("1mo")).
		Field(sizeField(fieldStep, "By how much windows grow.", true).Example("1h").Example("1d")).
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
	offset, err := parseSigned(conf, 0, fieldOffset)
	if err != nil {
		return g, err
	}
	size, calendar, err := parseCalendar(conf, fieldSize)
	if err != nil {
		return g, err
	}
	step, days, err := parseCalendar(conf, fieldStep)
	if err != nil {
		return g, err
	}
	switch {
	case days && calendar:
		g.assigner, err = windowing.NewCalendarCumulative(size, step, offset, g.location())
	case days:
		err = fmt.Errorf("%s %s and %s: one follows the calendar, the other does not: use units of the calendar (d, w, mo, q, y) for both, or a duration for the %s", fieldStep, step, fieldSize, fieldStep)
	default:
		g.assigner, err = fixedSteps(conf, size, calendar, offset, g.location())
	}
	return g, err
}

func fixedSteps(conf *service.ParsedConfig, size windowing.CalendarSize, calendar bool, offset time.Duration, zone *time.Location) (windowing.Assigner, error) {
	step, err := parseDuration(conf, 0, fieldStep)
	if err != nil {
		return nil, err
	}
	if calendar {
		return windowing.NewCalendarSteps(size, step, offset, zone)
	}
	whole, err := parseDuration(conf, 0, fieldSize)
	if err != nil {
		return nil, err
	}
	return windowing.NewCumulative(whole, step, offset)
}

func init() { register(kindCumulative, cumulativeSpec(), parseCumulative) }
