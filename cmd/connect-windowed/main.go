// Command connect-windowed runs Benthos pipelines with event-time operators. It
// has the subcommands and flags of Benthos (run, lint, test, list, create, ...)
// and exits with a status other than 0 when a configuration has a lint error, a
// test of it fails, a component cannot be constructed, or a running component
// meets a fault.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	_ "time/tzdata" // zones work where the machine has no zone database

	"github.com/urfave/cli/v2"

	_ "github.com/redpanda-data/benthos/v4/public/components/io"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/processors"
	_ "github.com/connect-windowed/connect-windowed/processors/kafka"
	_ "github.com/connect-windowed/connect-windowed/processors/sql"
)

// Stamped by the Makefile with -ldflags "-X main.version=... -X main.date=...".
var (
	version string
	date    string
)

func main() {
	faults := newFaultStop()
	processors.OnFault(faults.report)
	os.Exit(run(os.Args, faults, processors.SetDryRun))
}

// run executes the command line and returns the exit status of the process. It
// says whether state files have to be left alone before any component is
// constructed.
func run(args []string, faults *faultStop, setDryRun func(bool)) int {
	stamp, built := buildStamp(version, date)
	code, err := service.RunCLIToCode(context.Background(),
		service.CLIOptSetArgs(args...),
		service.CLIOptSetBinaryName("connect-windowed"),
		service.CLIOptSetProductName("connect-windowed"),
		service.CLIOptSetDocumentationURL("https://github.com/connect-windowed/connect-windowed"),
		service.CLIOptSetVersion(stamp, built),
		service.CLIOptSetDefaultConfigPaths("/connect-windowed.yaml", "/etc/connect-windowed/config.yaml"),
		// Called first by run, streams, test and lint, with their own context:
		// what flags stood before or after the subcommand is settled by then.
		service.CLIOptCustomRunFlags(nil, func(c *cli.Context) error {
			setDryRun(isDry(c.Command.Name))
			return nil
		}),
	)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return faults.exitCode(code)
}

// isDry reports whether a subcommand must leave every state file alone.
func isDry(subcommand string) bool {
	return subcommand == "test" || subcommand == "lint"
}

// buildStamp returns the version and the date of the build: what the linker was
// told, else what the Go toolchain recorded, else "unknown".
func buildStamp(version, date string) (string, string) {
	if info, ok := debug.ReadBuildInfo(); ok {
		if version == "" && info.Main.Version != "(devel)" {
			version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision" && version == "":
				version = s.Value
			case s.Key == "vcs.time" && date == "":
				date = s.Value
			}
		}
	}
	if version == "" {
		version = "unknown"
	}
	if date == "" {
		date = "unknown"
	}
	return version, date
}
