package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// without names the variant that reads the same events and keeps nothing.
func (v variant) without() string {
	name, size, _ := strings.Cut(strings.TrimPrefix(v.name, "none/"), "/")
	size, _, _ = strings.Cut(size, "/")
	return "none/" + name + "/" + size
}

// keyedInputs are the files of streams of keys, written when they are first needed.
type keyedInputs struct {
	dir   string
	files map[keyed]input
}

func (l *keyedInputs) of(k keyed) (input, error) {
	if in, written := l.files[k]; written {
		return in, nil
	}
	in := input{path: filepath.Join(l.dir, fmt.Sprintf("keys-%d-%v.ndjson", k.keys, k.pairs)), events: k.events()}
	file, err := os.Create(in.path)
	if err != nil {
		return in, err
	}
	defer file.Close()
	out := bufio.NewWriterSize(file, 1<<20)
	if err := k.write(out); err != nil {
		return in, err
	}
	if err := out.Flush(); err != nil {
		return in, err
	}
	l.files[k] = in
	return in, file.Close()
}

// write makes up the events, in the order of their times.
func (k keyed) write(out *bufio.Writer) error {
	rng := rand.New(rand.NewPCG(20260302, uint64(k.keys)))
	start := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	step := time.Hour / time.Duration(k.keys)
	var line []byte
	for i := range k.events() {
		id, kind := i, "order"
		switch {
		case k.pairs && i%2 == 1:
			id, kind = i/2-k.keys/8, "payment"
		case k.pairs:
			id = i / 2
		case rng.IntN(100) == 0:
			id = max(0, i-rng.IntN(k.keys/2))
		}
		line = append(line[:0], `{"ts":"`...)
		line = start.Add(time.Duration(i)*step).AppendFormat(line, "2006-01-02T15:04:05.000000Z07:00")
		line = append(append(append(line, `","kind":"`...), kind...), `","id":"id-`...)
		line = fmt.Appendf(line, "%08x", uint32(id)*2654435761) // in no order
		line = append(line, `","amount":`...)
		line = strconv.AppendFloat(line, float64(rng.Int64N(20_000))/100, 'f', 2, 64)
		if _, err := out.Write(append(line, "}\n"...)); err != nil {
			return err
		}
	}
	return nil
}
