package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// settings keep a stream quiet. Benthos leaves a timer behind that ends the
// process some time after the shutdown timeout, so that one is long.
const settings = `
http: { enabled: false }
logger: { level: none }
shutdown_timeout: 1h
`

const okConfig = settings + `
input: { generate: { count: 1, interval: "", mapping: 'root = {"a": 1}' } }
pipeline: { processors: [ { mapping: root = this } ] }
output: { drop: {} }
tests:
  - name: passes through
    target_processors: /pipeline/processors
    input_batch: [ { content: '{"a":1}' } ]
    output_batches: [ [ { json_equals: {"a": 1} } ] ]
`

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// runLine runs a command line, "FILE" being the path of a configuration, and
// returns the exit status and what was said about dry runs.
func runLine(t *testing.T, line, config string) (code int, dry []bool) {
	t.Helper()
	args := append([]string{"connect-windowed"}, strings.Fields(line)...)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "FILE", config)
	}
	code = run(args, newFaultStop(), func(on bool) { dry = append(dry, on) })
	return code, dry
}

func TestExitStatus(t *testing.T) {
	ok := writeConfig(t, okConfig)
	badLint := writeConfig(t, strings.Replace(okConfig, "count:", "cuont:", 1))
	badTest := writeConfig(t, strings.Replace(okConfig, `{"a": 1} } ] ]`, `{"a": 2} } ] ]`, 1))
	badStart := writeConfig(t, settings+`
input: { file: { paths: [ lines.txt ], scanner: { re_match: { pattern: '(' } } } }
output: { drop: {} }
`)
	missing := filepath.Join(t.TempDir(), "missing.yaml")
	cases := []struct {
		line, config string
		want         int
	}{
		{"run FILE", ok, 0},
		{"-c FILE", ok, 0},
		{"lint FILE", ok, 0},
		{"test FILE", ok, 0},
		{"list inputs", ok, 0},
		{"create stdin//stdout", ok, 0},
		{"--version", ok, 0},
		{"run FILE", badLint, 1},
		{"-c FILE", badLint, 1},
		{"lint FILE", badLint, 1},
		{"test FILE", badLint, 1},
		{"test FILE", badTest, 1},
		{"run FILE", badStart, 1},
		{"run FILE", missing, 1},
		{"lint FILE", missing, 1},
		{"test FILE", missing, 1},
		{"create nonsense//drop", ok, 1},
		{"nonsense", ok, 1},
		{"run --nonsense FILE", ok, 1},
	}
	for _, c := range cases {
		code, _ := runLine(t, c.line, c.config)
		require.Equal(t, c.want, code, "%s with %s", c.line, c.config)
	}
}

func TestOnlyTestAndLintAreDryRuns(t *testing.T) {
	config := writeConfig(t, okConfig)
	cases := map[string]bool{
		"run FILE":                          false,
		"run --log.level off FILE":          false,
		"-c FILE":                           false,
		"--chilled -c FILE":                 false,
		"test FILE":                         true,
		"test --log error FILE":             true,
		"--log.level off test FILE":         true,
		"-c FILE lint":                      true,
		"-c=FILE --chilled lint":            true,
		"--set logger.level=off lint FILE":  true,
		"lint --skip-env-var-check FILE":    true,
		"-c FILE run":                       false,
		"--log.level off -c FILE --chilled": false,
	}
	for line, want := range cases {
		_, dry := runLine(t, line, config)
		require.Equal(t, []bool{want}, dry, line)
	}
}

// A fault stops a stream that would run for ever, gracefully, and the status is 1.
func TestFaultStopsTheStream(t *testing.T) {
	faults := newFaultStop()
	var over atomic.Bool // the process goes on here, and its other tests are not to be stopped
	faults.interrupt = func() {
		if !over.Load() {
			interruptSelf()
		}
	}
	faults.exit = func(code int) {
		if !over.Load() {
			os.Exit(code)
		}
	}
	env := func(ctx context.Context) {
		faults.report(errors.New("offset 7 of orders/0 has another payload"))
	}
	service.MustRegisterInput("faulting", service.NewConfigSpec(),
		func(*service.ParsedConfig, *service.Resources) (service.Input, error) {
			return &faultingInput{fault: env}, nil
		})
	config := writeConfig(t, settings+`
input: { faulting: {} }
output: { drop: {} }
`)
	code := run([]string{"connect-windowed", "run", config}, faults, func(bool) {})
	over.Store(true)
	require.Equal(t, exitFault, code)
}

// faultingInput reports a fault and then falls silent until it is stopped.
type faultingInput struct{ fault func(context.Context) }

func (f *faultingInput) Connect(context.Context) error { return nil }

func (f *faultingInput) Read(ctx context.Context) (*service.Message, service.AckFunc, error) {
	go f.fault(ctx)
	<-ctx.Done()
	return nil, nil, ctx.Err()
}

func (f *faultingInput) Close(context.Context) error { return nil }

func TestFaultWithoutAGracefulStop(t *testing.T) {
	exits, interrupts := make(chan int, 10), 0
	f := &faultStop{grace: 2 * faultRepeat, interrupt: func() { interrupts++ }, exit: func(code int) { exits <- code }}
	require.Equal(t, 0, f.exitCode(0))
	require.Equal(t, 3, f.exitCode(3))
	start := time.Now()
	f.report(errors.New("damaged page"))
	f.report(errors.New("damaged page")) // the second waits for nothing
	require.GreaterOrEqual(t, time.Since(start), f.grace)
	require.Equal(t, exitFault, <-exits)
	require.Empty(t, exits)
	require.GreaterOrEqual(t, interrupts, 2)
	require.Equal(t, exitFault, f.exitCode(0))
	require.Equal(t, 3, f.exitCode(3))
}

func TestBuildStamp(t *testing.T) {
	version, date := buildStamp("v1.2.3", "2026-01-02")
	require.Equal(t, "v1.2.3", version)
	require.Equal(t, "2026-01-02", date)
	version, date = buildStamp("", "")
	require.NotEmpty(t, version)
	require.NotEmpty(t, date)
}
