package processors

import (
	"fmt"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/windowing"
)

const (
	kindTumbling = "tumbling_window"
	fieldSize    = "size"
	fieldOffset  = "offset"
)

func tumblingSpec() *service.ConfigSpec {
	return service.NewConfigSpec().Beta().Categories("Windowing").
		Summary("Aggregates rows by windows of one size that neither overlap nor leave gaps.").
		Description(`Windows are ` + "`[start, end)`" + `, aligned to 1970-01-01T00:00:00Z plus ` + "`offset`" + `. A window is final when the watermark has reached its end; then each of its groups comes out as one row, ordered by end, start and group: a JSON object of ` + "`window_start`, `window_end`" + `, the ` + "`group_by`" + ` fields and the aggregates. A row whose window is final already is late.

State grows with the open windows times the groups in each.`).
		Field(durationField(fieldSize, "The length of a window.").Example("5m")).
		Field(service.NewStringField(fieldOffset).Default("0s").Advanced().LintRule(durationLint(fieldOffset, true)).
			Description("Moves the grid, also backwards; it counts modulo the size.")).
		Fields(aggregateFields()...).
		Fields(commonFields()...).
		LintRule(`root = if !this.size.string().re_match("[1-9]") { [ "size: " + this.size.string() + " is not allowed: use a duration above 0s" ] } else { [] }`)
}

// parseTumbling reads the configuration of a tumbling window.
func parseTumbling(conf *service.ParsedConfig) (*operator, error) {
	op, err := parseCommon(conf, kindTumbling)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*operator, error) { return nil, fmt.Errorf("%s %q: %w", op.kind, op.name, err) }
	size, err := parseDuration(conf, 0, fieldSize)
	if err != nil {
		return fail(err)
	}
	offset, err := parseSigned(conf, 0, fieldOffset)
	if err != nil {
		return fail(err)
	}
	grid, err := windowing.NewTumbling(size, offset)
	if err != nil {
		return fail(err)
	}
	if err := op.aggregate(conf, grid); err != nil {
		return fail(err)
	}
	return op, nil
}

func init() { register(kindTumbling, tumblingSpec(), parseTumbling) }
