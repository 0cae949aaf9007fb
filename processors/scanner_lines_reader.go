package processors

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// linesConfig is how a linesReader cuts its source. The numbers are at least 1,
// the delimiter is not empty.
type linesConfig struct {
	maxLines  int    // lines in a batch
	maxBytes  int    // bytes of lines in a batch
	maxLine   int    // bytes in a line, delimiter not counted
	delim     []byte // ends a line
	trimCR    bool   // a carriage return before the delimiter belongs to it
	omitEmpty bool
}

// emptyReadsAllowed is how often in a row a source may return neither bytes nor
// an error before it counts as broken. bufio allows as many.
const emptyReadsAllowed = 100

// smallestBuffer bounds from below what is read at once, in bytes, however small
// the batches are.
const smallestBuffer = 4 << 10

// linesReader cuts the bytes of one source into batches of lines. Messages alias
// the buffer that was read into, and none of its bytes is written again once a
// message owns it; a buffer that is used up is left to them. One goroutine at a
// time may use it.
//
//	buf:  | owned by messages | skipped | start ... end | free |
//	                          owned
type linesReader struct {
	linesConfig
	src  io.ReadCloser
	name string // of the source, for errors

	buf        []byte
	owned      int      // messages alias buf[:owned]
	start, end int      // buf[start:end] is read and not yet cut
	searched   int      // the first bytes of buf[start:end] in which no delimiter begins
	skipping   bool     // the rest of a line that was too long is being passed over
	err        error    // what Read returned, io.EOF included: nothing more will come
	line       int64    // lines begun, for errors
	lines      [][]byte // memory for those of a batch
}

func newLinesReader(src io.ReadCloser, name string, conf linesConfig) *linesReader {
	return &linesReader{linesConfig: conf, src: src, name: name}
}

// NextBatch implements service.SimpleBatchScanner. It returns io.EOF after the last
// batch.
func (r *linesReader) NextBatch(context.Context) (service.MessageBatch, error) {
	lines, failed, err := r.next(r.lines[:0])
	if err != nil {
		return nil, err
	}
	r.lines = lines
	return lineMessages(lines, failed), nil
}

// next appends the lines of the next batch, at least one, with what is wrong with
// some of them, by index. It reads from the source only when the bytes at hand hold
// no whole line, and then once, so that what has arrived is never held back.
func (r *linesReader) next(dst [][]byte) (lines [][]byte, failed map[int]error, err error) {
	for {
		if lines, failed = r.cut(dst); len(lines) > 0 {
			return lines, failed, nil
		}
		if r.err != nil {
			return nil, nil, r.err
		}
		r.fill()
	}
}

// Close implements service.SimpleBatchScanner.
func (r *linesReader) Close(context.Context) error { return r.src.Close() }

// cut appends the lines at hand, as many as fit a batch.
func (r *linesReader) cut(lines [][]byte) (all [][]byte, failed map[int]error) {
	size := 0
	for len(lines) < r.maxLines {
		line, next, ok := r.peekLine()
		if !ok {
			break
		}
		if len(line) > 0 || !r.omitEmpty {
			if size += len(line); size > r.maxBytes && len(lines) > 0 {
				break
			}
			line, err := r.own(line)
			if err != nil {
				if failed == nil {
					failed = map[int]error{}
				}
				failed[len(lines)] = err
			}
			lines = append(lines, line)
		}
		r.consume(next)
	}
	return lines, failed
}

// lineMessages makes the messages of a batch.
func lineMessages(lines [][]byte, failed map[int]error) service.MessageBatch {
	messages := make([]service.Message, len(lines))
	batch := make(service.MessageBatch, len(lines))
	for i, line := range lines {
		messages[i] = *service.NewMessage(line)
		batch[i] = &messages[i]
	}
	for i, err := range failed {
		batch[i].SetError(err)
	}
	return batch
}

// lineEnd says where reading goes on after a line.
type lineEnd struct {
	start    int  // offset in buf
	skipping bool // the rest of the line has to be passed over first
}

// peekLine returns the next line, whole or (one byte longer than allowed) the
// beginning of one that is too long, and where the one after it starts. It is
// not ok when more bytes are needed.
func (r *linesReader) peekLine() (line []byte, next lineEnd, ok bool) {
	if r.skipping && !r.skip() {
		return nil, next, false
	}
	data := r.buf[r.start:r.end]
	if i := bytes.Index(data[r.searched:], r.delim); i >= 0 {
		i += r.searched
		return r.trim(data[:i]), lineEnd{start: r.start + i + len(r.delim)}, true
	}
	r.searched = max(0, len(data)-len(r.delim)+1)
	switch {
	case errors.Is(r.err, io.EOF):
		return r.trim(data), lineEnd{start: r.end}, len(data) > 0
	case len(data) > r.maxLine+len("\r")+len(r.delim):
		// Wherever the delimiter is going to be, the line before it is too long.
		return data[:r.maxLine+1], lineEnd{start: r.start + r.searched, skipping: true}, true
	}
	return nil, next, false
}

// skip passes over the rest of a line that was too long and reports whether its
// end was reached. The bytes passed over are free again.
func (r *linesReader) skip() (done bool) {
	data := r.buf[r.start:r.end]
	i := bytes.Index(data, r.delim)
	switch {
	case i >= 0:
		r.start += i + len(r.delim)
	case r.err != nil:
		r.start = r.end
	default: // the delimiter may have begun
		keep := min(len(data), len(r.delim)-1)
		r.end = r.owned + copy(r.buf[r.owned:], data[len(data)-keep:])
		r.start = r.owned
		return false
	}
	r.skipping = false
	return true
}

// consume moves past a line that peekLine returned.
func (r *linesReader) consume(next lineEnd) {
	r.start, r.skipping, r.searched = next.start, next.skipping, 0
	r.line++
}

// own gives a line that peekLine returned to whoever takes the batch, and says what
// is wrong with it.
func (r *linesReader) own(line []byte) (all []byte, err error) {
	if len(line) > r.maxLine {
		line = line[:r.maxLine]
		err = fmt.Errorf("%w: line %d of %q has more than max_line_bytes (%d): its first bytes are kept, the rest is skipped; raise max_line_bytes or look for a missing delimiter",
			ErrLineTooLong, r.line+1, r.name, r.maxLine)
	}
	r.owned = r.start + len(line)
	return line[:len(line):len(line)], err
}

// trim takes the carriage return from the end of a line.
func (r *linesReader) trim(line []byte) []byte {
	if n := len(line); r.trimCR && n > 0 && line[n-1] == '\r' {
		return line[:n-1]
	}
	return line
}

// fill reads once, after making room.
func (r *linesReader) fill() {
	r.makeRoom()
	for range emptyReadsAllowed {
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		r.err = err
		if n > 0 || err != nil {
			return
		}
	}
	r.err = io.ErrNoProgress
}

// makeRoom starts another buffer when the free part of this one is so small that
// a read would bring little. Bytes not yet cut, the beginning of a line, move.
func (r *linesReader) makeRoom() {
	size := max(r.maxBytes, smallestBuffer)
	if len(r.buf)-r.end >= size/8 {
		return
	}
	rest := r.buf[r.start:r.end]
	buf := make([]byte, max(size, 2*len(rest)))
	r.end = copy(buf, rest)
	r.buf, r.start, r.owned = buf, 0, 0
}
