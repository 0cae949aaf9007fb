package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// sample is one run of a variant.
type sample struct {
	rate float64 // events per second of wall time
	cpu  float64 // microseconds of processor time per event, of all cores
	peak float64 // bytes of resident memory
}

func newSample(events int, took time.Duration, p *os.ProcessState) sample {
	cpu := p.UserTime() + p.SystemTime()
	return sample{
		rate: float64(events) / took.Seconds(),
		cpu:  float64(cpu.Nanoseconds()) / 1e3 / float64(events),
		peak: peakOf(p),
	}
}

// measure runs a variant once, from an empty state folder.
func measure(ctx context.Context, dir, binary string, v variant, in input) (s sample, err error) {
	work, err := os.MkdirTemp(dir, "run-")
	if err != nil {
		return s, err
	}
	defer os.RemoveAll(work)
	config, err := v.config(in, filepath.Join(work, "state.db"))
	if err != nil {
		return s, err
	}
	path := filepath.Join(work, "config.yaml")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		return s, err
	}
	cmd := exec.CommandContext(ctx, binary, "run", path)
	var logs bytes.Buffer
	cmd.Stderr = &logs
	if v.stock {
		return measureStock(cmd, &logs)
	}
	cmd.Stdout = &logs
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return s, fmt.Errorf("%w: %s", err, logs.Bytes())
	}
	if logs.Len() > 0 { // an error that did not end the process
		return s, fmt.Errorf("it logged: %s", logs.Bytes())
	}
	return newSample(in.events, time.Since(start), cmd.ProcessState), nil
}

// measureStock counts the events that reached a row. Under load the buffer
// acknowledges and drops whole windows, so the length of the input says little.
// The wait for the end of the last window is not held against it, nor is half of a
// short run.
func measureStock(cmd *exec.Cmd, logs *bytes.Buffer) (s sample, err error) {
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return s, err
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return s, err
	}
	events, last, err := countRows(stdout)
	if waitErr := cmd.Wait(); err == nil {
		err = waitErr
	}
	if err != nil {
		return s, fmt.Errorf("%w: %s", err, logs.Bytes())
	}
	if events == 0 {
		return s, fmt.Errorf("no row came out, the input is too short for a window of %v", stockWindow)
	}
	took := last.Sub(start)
	return newSample(events, max(took-stockWindow, took/2), cmd.ProcessState), nil
}

// countRows sums what the rows counted and tells when the last one came.
func countRows(rows io.Reader) (events int, last time.Time, err error) {
	lines := bufio.NewScanner(rows)
	for lines.Scan() {
		var row struct{ Orders int }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			return 0, last, fmt.Errorf("row %q: %w", lines.Bytes(), err)
		}
		events += row.Orders
		last = time.Now()
	}
	return events, last, lines.Err()
}
