package processors

import (
	"fmt"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/windowing"
)

const (
	kindSliding = "sliding_window"
	fieldSlide  = "slide"
)

func slidingSpec() *service.ConfigSpec {
	return service.NewConfigSpec().Beta().Categories("Windowing").
		Summary("Aggregates rows by windows of one size that overlap: a new one starts every `slide`.").
		Description("Windows are `[start, end)`; they start every `slide`, aligned to 1970-01-01T00:00:00Z plus `offset`. A row counts in every window that contains it and that is not final yet. Size need not be a multiple of slide." + gridWords + fmt.Sprintf(`

A row is applied once, to a slice of event time; windows put their slices together when they come out. State grows with the slices that have rows times the groups in each, the output with the windows: size / slide rows for each group. A row may be in at most %d windows.`, windowing.MaxOverlap)).
		Field(sizeField(fieldSize, "The length of a window.", true).Example("10m").Example("7d")).
		Field(sizeField(fieldSlide, "How often a window starts, at most the size.", true).Example("5m").Example("1d")).
		Fields(gridFields("slide")...).
		Fields(aggregateFields()...).
		Fields(commonFields()...)
}

// parseSliding reads the configuration of a sliding window.
func parseSliding(conf *service.ParsedConfig) (*operator, error) {
	op, err := parseCommon(conf, kindSliding)
	if err != nil {
		return nil, err
	}
	g, err := parseGrid(conf, fieldSlide)
	if err == nil {
		err = op.window(conf, g)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", op.kind, op.name, err)
	}
	return op, nil
}

func init() { register(kindSliding, slidingSpec(), parseSliding) }
