package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// windowSize is the size of the windows of all variants, in event time.
const windowSize = 5 * time.Minute

// input is a file of events.
type input struct {
	path   string
	events int
}

// part is a share of the input: variants that handle a line at a time get a
// smaller file, their rate does not depend on its length.
type part int

const (
	whole   part = 1
	quarter part = 4
)

// writeInputs writes the files of all parts.
func writeInputs(dir string, s settings) (map[part]input, error) {
	files := map[part]input{}
	for _, p := range []part{whole, quarter} {
		in := input{path: filepath.Join(dir, fmt.Sprintf("orders-%d.ndjson", p)), events: max(1, s.events/int(p))}
		if err := writeOrders(in, s.keys, s.perKey); err != nil {
			return nil, err
		}
		files[p] = in
	}
	return files, nil
}

// writeOrders writes orders in the order of their arrival, up to three minutes
// behind the newest one.
func writeOrders(in input, keys, perKey int) error {
	file, err := os.Create(in.path)
	if err != nil {
		return err
	}
	defer file.Close()
	out := bufio.NewWriterSize(file, 1<<20)
	if err := eachOrder(in.events, keys, perKey, func(_ int, order []byte) error {
		_, err := out.Write(append(order, '\n'))
		return err
	}); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return file.Close()
}

// eachOrder makes up orders. The bytes may be used until the next one.
func eachOrder(events, keys, perKey int, visit func(i int, order []byte) error) error {
	rng := rand.New(rand.NewPCG(20260302, 5001))
	start := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	step := windowSize / time.Duration(perKey*keys)
	var line []byte
	for i := range events {
		at := start.Add(time.Duration(i)*step - time.Duration(rng.Int64N(int64(3*time.Minute))))
		if i%10 > 0 { // nine of ten come at once
			at = start.Add(time.Duration(i) * step)
		}
		line = append(line[:0], `{"order_ts":"`...)
		line = at.AppendFormat(line, "2006-01-02T15:04:05.000Z07:00")
		line = append(line, `","page":"/item/`...)
		line = strconv.AppendInt(line, rng.Int64N(int64(keys)), 10)
		line = append(line, `","customer_id":`...)
		line = strconv.AppendInt(line, rng.Int64N(1_000_000), 10)
		line = append(line, `,"amount":`...)
		line = strconv.AppendFloat(line, float64(rng.Int64N(20_000))/100, 'f', 2, 64)
		line = append(line, '}')
		if err := visit(i, line); err != nil {
			return err
		}
	}
	return nil
}
