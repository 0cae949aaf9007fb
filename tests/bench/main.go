// Command bench compares whole processes of connect-windowed: a file read to
// nowhere, the same file through a durable tumbling window, and the same job done
// with the components that Benthos brings. It prints lines that a program can read:
//
//	rate <name> <events per second>
//	cpu <name> <microseconds per event, of all cores>
//	peak <name> <MiB of resident memory, mapped pages of the state file included>
//	rows <name> <rows that come out per second>
//	ratio <name> <value>, of two rates
//	bytes_per_key <name> <bytes of the peak, beyond that of a process without state>
//
// The variants run one after the other, and all of them again, BENCH_RUNS times;
// what is printed is the median of the runs. The input is made up from a fixed seed.
//
//	BENCH_BINARY   the binary to measure                  bin/connect-windowed
//	BENCH_EVENTS   events in the file                     2000000
//	BENCH_KEYS     groups                                 100000
//	BENCH_PER_KEY  events of a group in a window, mean    10
//	BENCH_RUNS     runs of each variant                   3
//	BENCH_ONLY     a regular expression, the variants to run
//	BENCH_LARGE    1: also operators with five million keys
//	BENCH_FLOORS   1: exit 1 when a ratio is below its floor
//	BENCH_PROFILE  a folder for processor profiles of the processes that read a topic
//	KAFKA_BROKERS  a broker for the topics; without it tests/kafka/kafka.sh starts one,
//	               and where it cannot, the topics are left out
//	BENCH_KAFKA    1: then that is an error
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// settings are what the environment says.
type settings struct {
	binary             string
	events, keys, runs int
	perKey             int
	only               *regexp.Regexp
	floors             bool
	profile            string
	broker             string
}

func readSettings() (s settings, err error) {
	s.binary = "bin/connect-windowed"
	if v := os.Getenv("BENCH_BINARY"); v != "" {
		s.binary = v
	}
	if s.binary, err = filepath.Abs(s.binary); err != nil {
		return s, err
	}
	if s.only, err = regexp.Compile(os.Getenv("BENCH_ONLY")); err != nil {
		return s, fmt.Errorf("BENCH_ONLY: %w", err)
	}
	s.floors = os.Getenv("BENCH_FLOORS") == "1"
	s.profile, s.broker = os.Getenv("BENCH_PROFILE"), os.Getenv("KAFKA_BROKERS")
	for _, n := range []struct {
		name string
		to   *int
		def  int
	}{
		{"BENCH_EVENTS", &s.events, 2_000_000},
		{"BENCH_KEYS", &s.keys, 100_000},
		{"BENCH_PER_KEY", &s.perKey, 10},
		{"BENCH_RUNS", &s.runs, 3},
	} {
		*n.to = n.def
		if v := os.Getenv(n.name); v != "" {
			if *n.to, err = strconv.Atoi(v); err != nil || *n.to < 1 {
				return s, fmt.Errorf("%s is %q: it must be a number from 1", n.name, v)
			}
		}
	}
	return s, nil
}

func run(ctx context.Context) error {
	s, err := readSettings()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "connect-windowed-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	files, err := writeInputs(dir, s)
	if err != nil {
		return err
	}
	wanted := slices.DeleteFunc(slices.Clone(variants), func(v variant) bool { return !s.only.MatchString(v.name) })
	topics, err := openTopics(ctx, dir, s, wanted)
	if err != nil {
		return err
	}
	defer topics.close()
	keys := keyedInputs{dir: dir, files: map[keyed]input{}}
	shapes := orderInputs{dir: dir, events: s.events, files: map[orders]input{}, rows: map[string]float64{}}
	rates, cpus, peaks := map[string][]float64{}, map[string][]float64{}, map[string][]float64{}
	for round := range s.runs {
		for _, v := range wanted {
			var sample sample
			switch {
			case v.keyed != nil:
				in, failed := keys.of(*v.keyed)
				if err = failed; err == nil {
					sample, err = measure(ctx, dir, s.binary, v, in)
				}
			case v.orders != nil:
				sample, err = shapes.measure(ctx, s.binary, v)
			case v.size == 0:
				sample, err = measure(ctx, dir, s.binary, v, files[v.part])
			case topics == nil:
				continue
			default:
				sample, err = topics.measure(ctx, v)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
			fmt.Fprintf(os.Stderr, "run %d of %d: %s %.0f\n", round+1, s.runs, v.name, sample.rate)
			rates[v.name] = append(rates[v.name], sample.rate)
			cpus[v.name] = append(cpus[v.name], sample.cpu)
			peaks[v.name] = append(peaks[v.name], sample.peak)
		}
	}
	shapes.report(rates)
	return report(rates, cpus, peaks, s.floors)
}

// report prints the medians and the ratios. With floors, a ratio below its own is
// an error.
func report(rates, cpus, peaks map[string][]float64, floors bool) error {
	for _, v := range variants {
		if len(rates[v.name]) > 0 {
			fmt.Printf("rate %s %.0f\n", v.name, median(rates[v.name]))
			fmt.Printf("cpu %s %.2f\n", v.name, median(cpus[v.name]))
			fmt.Printf("peak %s %.0f\n", v.name, median(peaks[v.name])/(1<<20))
		}
	}
	perKey(peaks)
	var below []string
	for _, r := range ratios {
		if len(rates[r.of]) == 0 || len(rates[r.to]) == 0 {
			continue
		}
		value := median(rates[r.of]) / median(rates[r.to])
		fmt.Printf("ratio %s %.2f\n", r.name, value)
		if value < r.floor {
			below = append(below, fmt.Sprintf("%s is %.2f, its floor is %.2f", r.name, value, r.floor))
		}
	}
	if floors && len(below) > 0 {
		return fmt.Errorf("below the floor: %v", below)
	}
	return nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
