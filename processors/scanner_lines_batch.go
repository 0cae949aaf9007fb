package processors

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/redpanda-data/benthos/v4/public/service"
)

const (
	nameLinesBatch = "lines_batch"

	lbFieldMaxBatchSize    = "max_batch_size"
	lbFieldMaxBatchBytes   = "max_batch_bytes"
	lbFieldMaxLineBytes    = "max_line_bytes"
	lbFieldCustomDelimiter = "custom_delimiter"
	lbFieldOmitEmpty       = "omit_empty"
)

// The defaults were measured: past some hundred lines a batch the cost of a line
// no longer falls, and a smaller batch reaches the output sooner.
const (
	lbDefaultBatchSize  = 500
	lbDefaultBatchBytes = 128 << 10
	lbDefaultLineBytes  = 1 << 20
)

// ErrLineTooLong is wrapped by the error on a message whose line was longer than
// the field max_line_bytes of the scanner lines_batch. The message holds the
// first bytes of the line.
var ErrLineTooLong = errors.New("line too long")

func linesBatchSpec() *service.ConfigSpec {
	return service.NewConfigSpec().
		Stable().
		Summary("Splits a stream of bytes into lines and yields them in batches.").
		Description(`
The stock scanner `+"`lines`"+` yields a batch for each line, and every batch pays for its way through the pipeline: a channel, a goroutine that waits for the acknowledgement, an entry in the list of messages to retry. This scanner yields many lines at once. What else `+"`lines`"+` does, it does too: a line ends with a line feed or with carriage return and line feed, the last line needs neither, and a custom delimiter takes their place.

== Batches

A batch is handed over when it is full (`+"`max_batch_size`, `max_batch_bytes`"+`) and otherwise as soon as the lines that have arrived are used up. The scanner never waits for more bytes while it holds a whole line, so a pipe, a socket or standard input delivers each line when it comes. A batch never crosses the end of a file.

== Long lines

A line longer than `+"`max_line_bytes`"+` becomes a message with its first bytes and an error, which `+"`catch`"+`, `+"`switch`"+` and `+"`errored()`"+` see. Reading goes on with the next line. (`+"`lines`"+` ends the file there, without the lines that follow.)

== Delivery

A file counts as delivered when every batch of it has been acknowledged. Most outputs and most inputs that own this scanner handle a batch as one: where an input retries what failed (`+"`auto_replay_nacks`"+`), it sends again the messages of the batch that failed, and the whole batch where the output does not say which. If the source breaks, the whole lines before the break are yielded, the torn one is not, and the error is reported.

== In front of windowed

Directly in the `+"`file` or `stdin`"+` input of a `+"`windowed`"+` input, where no processors stand between, one message goes through Benthos in the place of a batch and its lines are handed to the operators beside it. Nothing that comes out differs; a line costs a third. The counter `+"`input_received`"+` then has one of each batch under the path of the input and the others under that of the scanner, so that their sum is right. Where a tracer is configured each line goes the usual way, with its span.

== Memory

The messages of a batch share a buffer of `+"`max_batch_bytes`"+`. A component that keeps one message for long keeps its buffer too.
`).
		Fields(
			service.NewIntField(lbFieldMaxBatchSize).
				Description("The largest number of lines in a batch, at least 1.").
				LintRule(lbAtLeastOne(lbFieldMaxBatchSize)).
				Default(lbDefaultBatchSize),
			service.NewIntField(lbFieldMaxBatchBytes).
				Description("The largest number of bytes in a batch, delimiters not counted, at least 1. A longer line is a batch of its own. It is also the size of the buffer that is read into, which has no less than 4 KiB.").
				LintRule(lbAtLeastOne(lbFieldMaxBatchBytes)).
				Advanced().
				Default(lbDefaultBatchBytes),
			service.NewIntField(lbFieldMaxLineBytes).
				Description("The largest number of bytes in a line, its delimiter not counted, at least 1. A longer line becomes a message with its first `max_line_bytes` bytes and an error.").
				LintRule(lbAtLeastOne(lbFieldMaxLineBytes)).
				Default(lbDefaultLineBytes),
			service.NewStringField(lbFieldCustomDelimiter).
				Description("A text that ends a line in place of the line break. A carriage return is then part of the line.").
				Optional(),
			service.NewBoolField(lbFieldOmitEmpty).
				Description("Whether empty lines are left out.").
				Default(false),
		)
}

// lbAtLeastOne is the lint rule of a field that counts lines or bytes.
func lbAtLeastOne(field string) string {
	return fmt.Sprintf(`root = if this.type() == "number" && this < 1 { "field %s is " + this.string() + ": it must be at least 1" }`, field)
}

func init() {
	service.MustRegisterBatchScannerCreator(nameLinesBatch, linesBatchSpec(),
		func(conf *service.ParsedConfig, res *service.Resources) (service.BatchScannerCreator, error) {
			c, err := linesBatchFromParsed(conf)
			if err == nil {
				c.over = newScannerHandover(nameLinesBatch, res)
			}
			return c, err
		})
}

func linesBatchFromParsed(conf *service.ParsedConfig) (*linesBatchCreator, error) {
	c := &linesBatchCreator{linesConfig: linesConfig{delim: []byte{'\n'}, trimCR: true}}
	for field, to := range map[string]*int{
		lbFieldMaxBatchSize:  &c.maxLines,
		lbFieldMaxBatchBytes: &c.maxBytes,
		lbFieldMaxLineBytes:  &c.maxLine,
	} {
		n, err := conf.FieldInt(field)
		if err != nil {
			return nil, err
		}
		if n < 1 {
			return nil, fmt.Errorf("field %s is %d: it must be at least 1", field, n)
		}
		*to = n
	}
	if conf.Contains(lbFieldCustomDelimiter) {
		delim, err := conf.FieldString(lbFieldCustomDelimiter)
		if err != nil {
			return nil, err
		}
		if delim != "" {
			c.delim, c.trimCR = []byte(delim), false
		}
	}
	var err error
	c.omitEmpty, err = conf.FieldBool(lbFieldOmitEmpty)
	return c, err
}

// linesBatchCreator is the configuration of the scanner and makes one reader for
// each source.
type linesBatchCreator struct {
	linesConfig
	over *Handover // to the host, nil: messages go the usual way
}

// Create implements service.BatchScannerCreator.
func (c *linesBatchCreator) Create(src io.ReadCloser, ack service.AckFunc, details *service.ScannerSourceDetails) (service.BatchScanner, error) {
	name := ""
	if details != nil {
		name = details.Name()
	}
	r := newLinesReader(src, name, c.linesConfig)
	if c.over != nil {
		return service.AutoAggregateBatchScannerAcks(&linesHandover{r, c.over}, ack), nil
	}
	return service.AutoAggregateBatchScannerAcks(r, ack), nil
}

// Close implements service.BatchScannerCreator. A creator owns nothing.
func (c *linesBatchCreator) Close(context.Context) error { return nil }
