package processors

import (
	"fmt"

	"github.com/redpanda-data/benthos/v4/public/service"
)

const kindTumbling = "tumbling_window"

func tumblingSpec() *service.ConfigSpec {
	return service.NewConfigSpec().Beta().Categories("Windowing").
		Summary("Aggregates rows by windows of one size that neither overlap nor leave gaps.").
		Description("Windows are `[start, end)`, aligned to 1970-01-01T00:00:00Z plus `offset`." + gridWords + `

State grows with the open windows times the groups in each.`).
		Field(sizeField(fieldSize, "The length of a window.", true).Example("5m").Example("1d")).
		Fields(gridFields("size")...).
		Fields(aggregateFields()...).
		Fields(commonFields()...)
}

// parseTumbling reads the configuration of a tumbling window.
func parseTumbling(conf *service.ParsedConfig) (*operator, error) {
	op, err := parseCommon(conf, kindTumbling)
	if err != nil {
		return nil, err
	}
	g, err := parseGrid(conf, "")
	if err == nil {
		err = op.window(conf, g)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", op.kind, op.name, err)
	}
	return op, nil
}

func init() { register(kindTumbling, tumblingSpec(), parseTumbling) }
