package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// orders is a stream of orders of its own shape, see eachOrder.
type orders struct{ keys, perKey int }

// The streams: windows that merge many rows into few, and windows of which most rows
// come out again.
var (
	few  = orders{keys: 100, perKey: 1000}
	many = orders{keys: 100_000, perKey: 1}
	// Two orders of a user are half a minute apart in the mean.
	users = orders{keys: 100_000, perKey: 10}
)

// The windows, each with durable state.
func init() {
	for _, w := range []struct {
		name   string
		shape  orders
		window string
	}{
		{"window/100_groups", few, `tumbling_window: { size: 5m, %s }`},
		{"sliding/6x/100_groups", few, `sliding_window: { size: 5m, slide: 50s, %s }`},
		{"update/100_groups", few, `tumbling_window: { size: 5m, output_mode: update, %s }`},
		{"early/100_groups", few, `tumbling_window: { size: 5m, early: 100ms, %s }`},
		{"window/emitting", many, `tumbling_window: { size: 5m, %s }`},
		{"update/emitting", many, `tumbling_window: { size: 5m, output_mode: update, %s }`},
		{"session/100k_users", users, `session_window: { gap: 1m, %s }`},
		{"session/update/100k_users", users, `session_window: { gap: 1m, output_mode: update, %s }`},
	} {
		operator := fmt.Sprintf(w.window, "group_by: { page: this.page }, aggregates: { orders: count(), total: sum(this.amount) }")
		text := keeping("\n      - watermark: { event_time: this.order_ts, delay: 3m }\n      - "+operator, "")
		variants = append(variants, variant{name: w.name, orders: &w.shape, text: text})
	}
	ratios = append(ratios,
		ratio{"sliding_6x_to_tumbling/100_groups", "sliding/6x/100_groups", "window/100_groups", 0.80},
		ratio{"update_to_append/100_groups", "update/100_groups", "window/100_groups", 0},
		ratio{"early_to_append/100_groups", "early/100_groups", "window/100_groups", 0},
		ratio{"update_to_append/emitting", "update/emitting", "window/emitting", 0},
	)
}

// orderInputs are the files of such streams, written when they are first needed,
// with the rows that a variant makes of each event.
type orderInputs struct {
	dir    string
	events int
	files  map[orders]input
	rows   map[string]float64
}

func (l *orderInputs) of(o orders) (input, error) {
	in, written := l.files[o]
	if written {
		return in, nil
	}
	in = input{path: filepath.Join(l.dir, fmt.Sprintf("orders-%d-%d.ndjson", o.keys, o.perKey)), events: l.events}
	l.files[o] = in
	return in, writeOrders(in, o.keys, o.perKey)
}

// measure runs a variant. The first time it counts the rows that come out, in a run
// of its own: to print them takes longer than to make them.
func (l *orderInputs) measure(ctx context.Context, binary string, v variant) (sample, error) {
	in, err := l.of(*v.orders)
	if err != nil {
		return sample{}, err
	}
	if _, known := l.rows[v.name]; !known {
		rows, err := l.count(ctx, binary, v, in)
		if err != nil {
			return sample{}, err
		}
		l.rows[v.name] = float64(rows) / float64(in.events)
	}
	return measure(ctx, l.dir, binary, v, in)
}

func (l *orderInputs) count(ctx context.Context, binary string, v variant, in input) (rows int, err error) {
	work, err := os.MkdirTemp(l.dir, "count-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(work)
	v.text = strings.Replace(v.text, "output: { drop: {} }", "output: { stdout: {} }", 1)
	config, err := v.config(in, filepath.Join(work, "state.db"))
	if err != nil {
		return 0, err
	}
	path := filepath.Join(work, "config.yaml")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, binary, "run", path)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		rows++
	}
	if err := cmd.Wait(); err != nil {
		return 0, err
	}
	return rows, lines.Err()
}

// report prints how many rows came out in a second.
func (l *orderInputs) report(rates map[string][]float64) {
	for _, v := range variants {
		if per, counted := l.rows[v.name]; counted && len(rates[v.name]) > 0 {
			fmt.Printf("rows %s %.0f\n", v.name, per*median(rates[v.name]))
		}
	}
}
