package processors

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/redpanda-data/benthos/v4/public/service"

	_ "github.com/redpanda-data/benthos/v4/public/components/io"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
)

// scannerFor builds a scanner from its YAML and opens it on src.
func scannerFor(t testing.TB, yaml string, src io.ReadCloser, ack service.AckFunc) *service.OwnedScanner {
	t.Helper()
	conf, err := service.NewConfigSpec().Field(service.NewScannerField("scanner")).ParseYAML("scanner:\n  "+yaml, nil)
	require.NoError(t, err)
	creator, err := conf.FieldScanner("scanner")
	require.NoError(t, err)
	details := service.NewScannerSourceDetails()
	details.SetName("orders.ndjson")
	scanner, err := creator.Create(src, ack, details)
	require.NoError(t, err)
	return scanner
}

func ignoreAck(context.Context, error) error { return nil }

// readBatches returns what a scanner yields, batch by batch, up to the error
// that ends it. A message with an error is written as "!" and its payload.
func readBatches(t testing.TB, scanner *service.OwnedScanner) (batches [][]string, err error) {
	t.Helper()
	for {
		batch, ack, err := scanner.NextBatch(t.Context())
		if err != nil {
			return batches, err
		}
		require.NoError(t, ack(t.Context(), nil))
		batches = append(batches, texts(t, batch))
	}
}

func texts(t testing.TB, batch service.MessageBatch) (lines []string) {
	t.Helper()
	for _, msg := range batch {
		data, err := msg.AsBytes()
		require.NoError(t, err)
		mark := ""
		if err := msg.GetError(); err != nil {
			require.ErrorIs(t, err, ErrLineTooLong)
			mark = "!"
		}
		lines = append(lines, mark+string(data))
	}
	return lines
}

func TestLinesBatchCuts(t *testing.T) {
	cases := map[string]struct {
		conf, in string
		want     [][]string
	}{
		"nothing":                  {"{}", "", nil},
		"one line":                 {"{}", "a\n", [][]string{{"a"}}},
		"last line unended":        {"{}", "a\nb", [][]string{{"a"}, {"b"}}},
		"empty lines":              {"{}", "\n\na\n\n", [][]string{{"", "", "a", ""}}},
		"empty lines left out":     {"omit_empty: true", "\n\na\n\r\n", [][]string{{"a"}}},
		"only empty lines":         {"omit_empty: true", "\n\r\n\n", nil},
		"carriage return":          {"{}", "a\r\nb\r\r\n\rc\n\r", [][]string{{"a", "b\r", "\rc"}, {""}}},
		"delimiter":                {"custom_delimiter: END", "aENDbENENDENDc\r", [][]string{{"a", "bEN", ""}, {"c\r"}}},
		"empty delimiter":          {"custom_delimiter: ''", "a\r\nb", [][]string{{"a"}, {"b"}}},
		"lines of a batch":         {"max_batch_size: 2", "a\nb\nc\nd\ne", [][]string{{"a", "b"}, {"c", "d"}, {"e"}}},
		"one line a batch":         {"max_batch_size: 1", "a\nb\n", [][]string{{"a"}, {"b"}}},
		"bytes of a batch":         {"max_batch_bytes: 4", "aa\nbb\nc\nddddd\ne", [][]string{{"aa", "bb"}, {"c"}, {"ddddd"}, {"e"}}},
		"longest line":             {"max_line_bytes: 3", "aaa\nbbb\r\nccc", [][]string{{"aaa", "bbb"}, {"ccc"}}},
		"longer by one":            {"max_line_bytes: 3", "aaaa\nbbbb\r\nc\ndddd", [][]string{{"!aaa", "!bbb", "c"}, {"!ddd"}}},
		"longer, then empty":       {"max_line_bytes: 1", "aaaaaaaaaaaaaaaaaaaa\n\n", [][]string{{"!a", ""}}},
		"longer, empty left out":   {"{max_line_bytes: 1, omit_empty: true}", "aaaaaaaaaaaaaaaaaaaa\n\nb", [][]string{{"!a"}, {"b"}}},
		"longer with a delimiter":  {"{max_line_bytes: 2, custom_delimiter: ==}", "aaaaaaaaa=a==b==ccccccc=", [][]string{{"!aa", "b", "!cc"}}},
		"carriage return at limit": {"max_line_bytes: 1", "a\r\nb\r", [][]string{{"a"}, {"b"}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			yaml := "lines_batch:\n    " + c.conf
			batches, err := readBatches(t, scannerFor(t, yaml, io.NopCloser(strings.NewReader(c.in)), ignoreAck))
			require.ErrorIs(t, err, io.EOF)
			require.Equal(t, c.want, batches)

			batches, err = readBatches(t, scannerFor(t, yaml, io.NopCloser(iotest.OneByteReader(strings.NewReader(c.in))), ignoreAck))
			require.ErrorIs(t, err, io.EOF)
			require.Equal(t, flat(c.want), flat(batches), "byte by byte")
		})
	}
}

func flat(batches [][]string) (lines []string) {
	for _, batch := range batches {
		lines = append(lines, batch...)
	}
	return lines
}

func TestLinesBatchNamesTheLineThatIsTooLong(t *testing.T) {
	in := "a\n" + strings.Repeat("b", 3<<20) + "\nc\n"
	scanner := scannerFor(t, "lines_batch: {}", io.NopCloser(strings.NewReader(in)), ignoreAck)
	var found []string
	for {
		batch, _, err := scanner.NextBatch(t.Context())
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
			break
		}
		for _, msg := range batch {
			data, err := msg.AsBytes()
			require.NoError(t, err)
			found = append(found, fmt.Sprintf("%d bytes, error: %v", len(data), msg.GetError()))
		}
	}
	require.Equal(t, []string{
		"1 bytes, error: <nil>",
		`1048576 bytes, error: line too long: line 2 of "orders.ndjson" has more than max_line_bytes (1048576): its first bytes are kept, the rest is skipped; raise max_line_bytes or look for a missing delimiter`,
		"1 bytes, error: <nil>",
	}, found)
}

// What has arrived is handed over although the batch is not full: the writer
// below sends the next line only when it has seen the one before.
func TestLinesBatchDoesNotWaitForAFullBatch(t *testing.T) {
	src, sink, err := os.Pipe()
	require.NoError(t, err)
	scanner := scannerFor(t, "lines_batch: {}", src, ignoreAck)
	send := func(s string) {
		_, err := sink.WriteString(s)
		require.NoError(t, err)
	}
	next := func() []string {
		batch, _, err := scanner.NextBatch(t.Context())
		require.NoError(t, err)
		return texts(t, batch)
	}
	send("a\nb\nbeginning of")
	require.Equal(t, []string{"a", "b"}, next())
	send(" c\n")
	require.Equal(t, []string{"beginning of c"}, next())
	send("d\n")
	require.Equal(t, []string{"d"}, next())
	send("rest")
	require.NoError(t, sink.Close())
	require.Equal(t, []string{"rest"}, next())
	_, _, err = scanner.NextBatch(t.Context())
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, scanner.Close(t.Context()))
}

func TestLinesBatchMessagesKeepTheirBytes(t *testing.T) {
	const lines = 20_000
	var in strings.Builder
	for i := range lines {
		fmt.Fprintf(&in, "%d%s\n", i, strings.Repeat("x", i%97))
	}
	// A short buffer and reads of odd sizes move unfinished lines all the time.
	src := &choppyReader{data: []byte(in.String()), rng: rand.New(rand.NewPCG(1, 2))}
	scanner := scannerFor(t, "lines_batch: {max_batch_bytes: 5000}", src, ignoreAck)
	var kept service.MessageBatch
	for {
		batch, _, err := scanner.NextBatch(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		kept = append(kept, batch...)
		// A consumer that appends to a payload must not reach its neighbour.
		data, err := batch[0].AsBytes()
		require.NoError(t, err)
		_ = append(data, "overwritten"...)
	}
	require.Equal(t, strings.Split(strings.TrimSuffix(in.String(), "\n"), "\n"), texts(t, kept))
}

// choppyReader returns its data in pieces of random size, some of them empty.
type choppyReader struct {
	data []byte
	rng  *rand.Rand
	fail error // in place of io.EOF
}

func (c *choppyReader) Read(p []byte) (int, error) {
	n := min(len(p), len(c.data), c.rng.IntN(3000))
	copy(p, c.data[:n])
	c.data = c.data[n:]
	switch {
	case len(c.data) > 0:
		return n, nil
	case c.fail != nil:
		return n, c.fail
	}
	return n, io.EOF
}

func (c *choppyReader) Close() error { return nil }

func TestLinesBatchSourceBreaks(t *testing.T) {
	broken := errors.New("connection reset")
	src := &choppyReader{data: []byte("a\nb\ntorn"), rng: rand.New(rand.NewPCG(1, 2)), fail: broken}
	var acked []error
	scanner := scannerFor(t, "lines_batch: {}", src, func(_ context.Context, err error) error {
		acked = append(acked, err)
		return nil
	})
	batches, err := readBatches(t, scanner)
	require.ErrorIs(t, err, broken)
	require.Equal(t, []string{"a", "b"}, flat(batches))
	require.Len(t, acked, 1)
	require.ErrorIs(t, acked[0], broken)
}

func TestLinesBatchSourceWithoutProgress(t *testing.T) {
	stuck := readFunc(func([]byte) (int, error) { return 0, nil })
	_, err := readBatches(t, scannerFor(t, "lines_batch: {}", io.NopCloser(stuck), ignoreAck))
	require.ErrorIs(t, err, io.ErrNoProgress)
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// The source is acknowledged once, after its end and after all of its batches.
func TestLinesBatchAcknowledgesTheSourceLast(t *testing.T) {
	refused := errors.New("refused")
	cases := map[string]struct {
		acks []error // of the three batches, in the order 2, 0, 1
		want []error
	}{
		"all delivered": {[]error{nil, nil, nil}, []error{nil}},
		"one refused":   {[]error{nil, refused, nil}, []error{refused}},
		"two refused":   {[]error{refused, refused, nil}, []error{refused}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []error
			scanner := scannerFor(t, "lines_batch: {max_batch_size: 1}", io.NopCloser(strings.NewReader("a\nb\nc\n")),
				func(_ context.Context, err error) error {
					got = append(got, err)
					return nil
				})
			var acks []service.AckFunc
			for range 3 {
				_, ack, err := scanner.NextBatch(t.Context())
				require.NoError(t, err)
				acks = append(acks, ack)
			}
			_, _, err := scanner.NextBatch(t.Context())
			require.ErrorIs(t, err, io.EOF)
			require.Empty(t, got)
			for i, batch := range []int{2, 0, 1} {
				require.NoError(t, acks[batch](t.Context(), c.acks[i]))
			}
			require.NoError(t, scanner.Close(t.Context()))
			require.Equal(t, c.want, got)
		})
	}
}

func TestLinesBatchRefusesNonsense(t *testing.T) {
	for _, field := range []string{"max_batch_size", "max_batch_bytes", "max_line_bytes"} {
		for _, n := range []int{0, -1} {
			conf, err := linesBatchSpec().ParseYAML(fmt.Sprintf("%s: %d", field, n), nil)
			require.NoError(t, err)
			_, err = linesBatchFromParsed(conf)
			require.EqualError(t, err, fmt.Sprintf("field %s is %d: it must be at least 1", field, n))

			err = service.NewStreamBuilder().SetYAML(fmt.Sprintf(
				"input: {stdin: {scanner: {lines_batch: {%s: %d}}}}", field, n))
			require.ErrorContains(t, err, fmt.Sprintf("field %s is %d: it must be at least 1", field, n), "lint")
		}
	}
}

// stockLines is what the scanner `lines` yields, which is what bufio yields.
func stockLines(in []byte, delim string, omitEmpty bool) (lines []string) {
	scanner := bufio.NewScanner(bytes.NewReader(in))
	scanner.Buffer(nil, len(in)+1)
	if delim != "" {
		scanner.Split(func(data []byte, atEOF bool) (int, []byte, error) {
			if i := bytes.Index(data, []byte(delim)); i >= 0 {
				return i + len(delim), data[:i], nil
			}
			if atEOF && len(data) > 0 {
				return len(data), data, nil
			}
			return 0, nil, nil
		})
	}
	for scanner.Scan() {
		if !omitEmpty || len(scanner.Bytes()) > 0 {
			lines = append(lines, scanner.Text())
		}
	}
	return lines
}

// Whatever the bytes, the pieces they come in and the sizes of batches, the lines
// are those of the stock scanner; a longer one is its own beginning, marked.
func FuzzLinesBatch(f *testing.F) {
	f.Add([]byte("a\r\nb\n\n"), "", uint64(1), uint8(3), uint16(10), uint16(5), false)
	f.Add([]byte("aENDbENENDEND"), "END", uint64(2), uint8(1), uint16(4000), uint16(4), true)
	f.Add(bytes.Repeat([]byte("=a"), 5000), "==", uint64(3), uint8(1), uint16(1), uint16(1), false)
	f.Fuzz(func(t *testing.T, in []byte, delim string, seed uint64, maxLines uint8, maxBytes, maxLine uint16, omitEmpty bool) {
		conf := linesConfig{
			maxLines: int(maxLines) + 1, maxBytes: int(maxBytes) + 1, maxLine: int(maxLine) + 1,
			delim: []byte(delim), omitEmpty: omitEmpty,
		}
		if delim == "" {
			conf.delim, conf.trimCR = []byte("\n"), true
		}
		var want []string
		for _, line := range stockLines(in, delim, omitEmpty) {
			if len(line) > conf.maxLine {
				line = "!" + line[:conf.maxLine]
			}
			want = append(want, line)
		}
		r := newLinesReader(&choppyReader{data: bytes.Clone(in), rng: rand.New(rand.NewPCG(seed, 0))}, "fuzz", conf)
		var got service.MessageBatch
		for {
			batch, err := r.NextBatch(t.Context())
			if err != nil {
				require.ErrorIs(t, err, io.EOF)
				break
			}
			require.LessOrEqual(t, len(batch), conf.maxLines)
			size := 0
			for _, msg := range batch {
				data, err := msg.AsBytes()
				require.NoError(t, err)
				size += len(data)
			}
			require.True(t, size <= conf.maxBytes || len(batch) == 1, "%d bytes in %d lines", size, len(batch))
			got = append(got, batch...)
		}
		require.Equal(t, want, texts(t, got)) // at the end, when buffers have come and gone
	})
}
