package processors

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // zones work where the machine has no zone database

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/processors/expr"
	"github.com/connect-windowed/connect-windowed/windowing"
)

// Fields of windows on a grid.
const (
	fieldSize       = "size"
	fieldOffset     = "offset"
	fieldTimezone   = "timezone"
	fieldOutputMode = "output_mode"
	fieldLateness   = "allowed_lateness"
	fieldEarly      = "early"
	fieldHaving     = "having"
	fieldFill       = "fill"
	fieldFillFor    = "fill_for"
)

// gridWords say in every manual what windows on a grid have in common.
const gridWords = `

A window is final when the watermark has reached its end. Then each of its groups comes out as one row, ordered by end, start and group: a JSON object of ` + "`window_start`, `window_end`" + `, the ` + "`group_by`" + ` fields and the aggregates. A row is late when all windows that it belongs to are final, and ` + "`allowed_lateness`" + ` is over. With ` + "`output_mode: update`" + ` groups come out at the end of every batch that changed them instead, with ` + "`complete`" + ` all of them; with ` + "`early`" + ` they come out now and then while a window is open, too.

A row that comes out again has the same ` + "`windowed_row_key`" + ` and a higher ` + "`windowed_revision`" + `: a sink replaces the row of that key. No stateful operator may follow one that revises its rows, since it would count them more than once.`

// calendarText is a size of the calendar, for lint rules.
const calendarText = `^[0-9]+(d|w|mo|q|y)$`

// sizeField is a duration, or a number of units of the calendar where calendar.
// What is wrong with those the constructor says, which lint asks too.
func sizeField(name, description string, calendar bool) *service.ConfigField {
	rule := durationLint(name, false)
	if calendar {
		description += " Days, weeks, months, quarters and years (`1d`, `1w`, `1mo`, `1q`, `1y`) follow the calendar of `timezone`, hours and less do not."
		rule = fmt.Sprintf("root = if this.string().re_match(%q) { [] } else { %s }", calendarText, strings.TrimPrefix(rule, "root = "))
	}
	return service.NewStringField(name).Description(description).LintRule(rule)
}

// gridFields are the fields of windows on a grid beside their sizes.
func gridFields(modulo string) []*service.ConfigField {
	return []*service.ConfigField{
		service.NewStringField(fieldOffset).Default("0s").Advanced().LintRule(durationLint(fieldOffset, true)).
			Description("Moves the grid, also backwards; it counts modulo the " + modulo + ". With sizes of the calendar it is local clock time, shorter than one unit: with `4h` a day starts at 04:00."),
		service.NewStringField(fieldTimezone).Optional().Example("Europe/Paris").
			Description("The time zone, by its IANA name, of sizes in days and longer, and in which `window_start` and `window_end` are written. `UTC` by default. Windows of hours, minutes and seconds stay aligned to UTC."),
		optionField(fieldOutputMode, windowing.OutputModes[:]...).Default(windowing.OutputModes[windowing.Append]).
			Description("`append`: each group of a window once, when the window is final. `update`: at the end of each batch every group that changed, with its full value. `complete`: at the end of each batch that changed something all groups of all windows; nothing is late and nothing is dropped, so that state grows without bound."),
		durationField(fieldLateness, "How long after its end a window still takes rows. With `append` a row that comes after the window was final sends its group again.").Default("0s").Advanced(),
		earlyField("while its window is not final"),
		havingField("this.orders >= 10"),
		// Not a text: in YAML null is a value of its own, which a reader of `fill: null` means.
		service.NewAnyField(fieldFill).Default(windowing.Fills[windowing.NoFill]).Advanced().
			Description("Rows for groups that have none in a window, once they had some: `null` gives the aggregates over no rows (counts are 0, others null), `zero` 0 in place of null. Such a row comes out when the window is final, also with `output_mode: update`; a late row that is allowed supersedes it. Windows that were final before a group had its first rows are not filled."),
		durationField(fieldFillFor, "How long after the end of its last window with rows a group is filled. Each window in between gives a row, also when event time jumps.").Optional().Advanced(),
	}
}

// earlyField is the field of early rows.
func earlyField(while string) *service.ConfigField {
	return durationField(fieldEarly, "How often, by the wall clock, a row that changed comes out "+while+", with its full value so far and `windowed_timing: early`: this long after the first change since the last time. The final row is the next revision and comes always. In the `windowed` input only, which has timers, and with `output_mode: append`. `0s` is never.").Default("0s")
}

// havingField is the field of the condition on results.
func havingField(example string) *service.ConfigField {
	return service.NewStringField(fieldHaving).Optional().Example(example).
		Description("A Bloblang condition on the result row: rows for which it is not true do not come out. Where rows are revised, one that came out and does not meet it any more is followed by a row with `windowed_timing: delete`, of bounds and group only. A row for which it fails comes out with the error.")
}

// grid is what parseGrid reads.
type grid struct {
	assigner windowing.Assigner
	zone     *time.Location // nil: UTC
}

func (g grid) location() *time.Location {
	if g.zone == nil {
		return time.UTC
	}
	return g.zone
}

// parseGrid reads size, slide (the field, "" for the size itself), offset and
// timezone.
func parseGrid(conf *service.ParsedConfig, slideField string) (g grid, err error) {
	if g.zone, err = parseZone(conf); err != nil {
		return g, err
	}
	offset, err := parseSigned(conf, 0, fieldOffset)
	if err != nil {
		return g, err
	}
	fields := []string{fieldSize}
	if slideField != "" {
		fields = append(fields, slideField)
	}
	var calendar []windowing.CalendarSize
	for _, field := range fields {
		size, ok, err := parseCalendar(conf, field)
		if err != nil {
			return g, err
		}
		if ok {
			calendar = append(calendar, size)
		}
	}
	switch len(calendar) {
	case 0:
		g.assigner, err = fixedGrid(conf, slideField, offset)
	case len(fields):
		g.assigner, err = windowing.NewCalendar(calendar[0], calendar[len(calendar)-1], offset, g.location())
	default:
		err = fmt.Errorf("%s and %s: one follows the calendar, the other does not: use units of the calendar (d, w, mo, q, y) for both, or hours and less (24h) for both", fieldSize, slideField)
	}
	return g, err
}

func fixedGrid(conf *service.ParsedConfig, slideField string, offset time.Duration) (windowing.Assigner, error) {
	size, err := parseDuration(conf, 0, fieldSize)
	if err != nil {
		return nil, err
	}
	if slideField == "" {
		return windowing.NewTumbling(size, offset)
	}
	slide, err := parseDuration(conf, 0, slideField)
	if err != nil {
		return nil, err
	}
	return windowing.NewSliding(size, slide, offset)
}

func parseCalendar(conf *service.ParsedConfig, field string) (size windowing.CalendarSize, ok bool, err error) {
	text, err := conf.FieldString(field)
	if err != nil {
		return size, false, err
	}
	if size, ok, err = windowing.ParseCalendarSize(text); err != nil {
		return size, ok, fmt.Errorf("%s: %w", field, err)
	}
	return size, ok, nil
}

func parseZone(conf *service.ParsedConfig) (*time.Location, error) {
	if !conf.Contains(fieldTimezone) {
		return nil, nil
	}
	name, err := conf.FieldString(fieldTimezone)
	if err != nil {
		return nil, err
	}
	// "" and "Local" are names to Go: whose machine it runs on must not matter.
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, fmt.Errorf("timezone: %q is not a time zone: use an IANA name, such as Europe/Paris, America/New_York or UTC", name)
	}
	return zone, nil
}

// window reads what windows on a grid have in common and makes the stage.
func (op *operator) window(conf *service.ParsedConfig, g grid) error {
	cfg := windowing.WindowConfig{Name: op.name, Assigner: g.assigner}
	var err error
	if cfg.GroupBy, err = parseGroups(conf); err != nil {
		return err
	}
	if cfg.Aggregates, err = parseAggregates(conf, cfg.GroupBy); err != nil {
		return err
	}
	late, err := parseOption(conf, fieldLate, "drop", "pass")
	if err != nil {
		return err
	}
	cfg.PassLate = late == "pass"
	if err := parseOutput(conf, &cfg); err != nil {
		return err
	}
	rows := newRowWriter(cfg.GroupBy, cfg.Aggregates)
	rows.zone = g.zone
	if cfg.Having, err = parseHaving(conf, rows); err != nil {
		return err
	}
	if err := parseFill(conf, &cfg); err != nil {
		return err
	}
	revises, early := cfg.Revises(), cfg.Early > 0
	if dryRun() { // no time passes there
		cfg.Early = 0
	}
	w := windowing.NewWindow(cfg)
	op.stage.Operator, op.stage.Revises, op.early = w, revises, early
	op.stage.Definition = w.Definition()
	op.compile = compileWindow(cfg.GroupBy, cfg.Aggregates)
	op.bind = func(p *program) windowing.Binding {
		b := newWindowBinding(p, cfg.GroupBy, cfg.Aggregates)
		b.rows = rows
		return b
	}
	return nil
}

// parseOutput reads the output mode and the allowed lateness.
func parseOutput(conf *service.ParsedConfig, cfg *windowing.WindowConfig) error {
	mode, err := conf.FieldString(fieldOutputMode)
	if err != nil {
		return err
	}
	at := slices.Index(windowing.OutputModes[:], mode)
	if at < 0 {
		return fmt.Errorf("output_mode: %q is not one: use append, update or complete", mode)
	}
	cfg.Mode = windowing.OutputMode(at)
	if cfg.Lateness, err = parseDuration(conf, 0, fieldLateness); err != nil {
		return err
	}
	if cfg.Mode == windowing.Complete && cfg.Lateness > 0 {
		return errors.New("allowed_lateness: with output_mode complete nothing is late: remove it")
	}
	cfg.Early, err = parseEarly(conf, cfg.Mode)
	return err
}

// parseEarly reads how often early rows come out.
func parseEarly(conf *service.ParsedConfig, mode windowing.OutputMode) (time.Duration, error) {
	early, err := parseDuration(conf, 0, fieldEarly)
	if err == nil && early > 0 && mode != windowing.Append {
		err = fmt.Errorf("early: with output_mode %s every change comes out with its batch already: remove early, or use append", windowing.OutputModes[mode])
	}
	return early, err
}

// parseHaving reads the condition on results, nil where there is none.
func parseHaving(conf *service.ParsedConfig, rows *rowWriter) (func(*windowing.Result) (bool, error), error) {
	if !conf.Contains(fieldHaving) {
		return nil, nil
	}
	text, err := conf.FieldString(fieldHaving)
	if err != nil {
		return nil, err
	}
	set := expr.NewSet()
	slot, err := set.Bool(fieldHaving, text)
	if err != nil {
		return nil, err
	}
	h := &having{set: set, slot: slot, rows: rows}
	return h.keeps, nil
}

// parseFill reads how empty windows are filled.
func parseFill(conf *service.ParsedConfig, cfg *windowing.WindowConfig) error {
	value, err := conf.FieldAny(fieldFill)
	if err != nil {
		return err
	}
	text := windowing.Fills[windowing.FillNull]
	if value = plain(value); value != nil {
		text = fmt.Sprint(value)
	}
	at := slices.Index(windowing.Fills[:], text)
	if at < 0 {
		return fmt.Errorf("fill: %q is not one: use none, null or zero", text)
	}
	cfg.Fill = windowing.Fill(at)
	if cfg.FillFor, err = parseDuration(conf, 0, fieldFillFor); err != nil {
		return err
	}
	switch {
	case cfg.Fill == windowing.NoFill && cfg.FillFor > 0:
		return errors.New("fill_for: fill is none: set it to null or zero, or remove fill_for")
	case cfg.Fill != windowing.NoFill && cfg.FillFor == 0:
		return fmt.Errorf("fill: %s has no bound: set fill_for to a duration above 0s, such as 1h", text)
	case cfg.Fill != windowing.NoFill && cfg.Mode == windowing.Complete:
		return errors.New("fill: a window is filled when it is final, which with output_mode complete none is: use append or update")
	}
	return nil
}

// having is a condition on results. It belongs to the owner of the operator.
type having struct {
	set   *expr.Set
	slot  expr.Slot
	rows  *rowWriter
	frame expr.Frame
}

// keeps implements windowing.WindowConfig.Having.
func (h *having) keeps(res *windowing.Result) (bool, error) {
	m := h.rows.message(res)
	h.set.Eval(service.MessageBatch{m}, &h.frame)
	defer h.frame.Reset()
	if err := h.frame.Err(0, h.slot); err != nil {
		res.Message = m
		return false, err
	}
	if !h.frame.Bool(0, h.slot) {
		return false, nil
	}
	res.Message = m
	return true, nil
}
