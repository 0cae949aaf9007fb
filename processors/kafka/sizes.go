package kafka

import (
	"fmt"
	"math"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// sizeField is a field that takes a number of bytes with a unit.
func sizeField(name, about, value string) *service.ConfigField {
	return service.NewStringField(name).Description(about + " Bytes, with a unit such as `KB`, `KiB` or `MB`.").Default(value).Advanced()
}

// parseSize reads a number of bytes from least to the largest int32, which is
// what the protocol takes.
func parseSize(conf *service.ParsedConfig, least int32, name string) (int32, error) {
	text, err := conf.FieldString(name)
	if err != nil {
		return 0, err
	}
	n, err := humanize.ParseBytes(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %q is not a size: use bytes with a unit, such as 512KiB or 1MB", name, text)
	}
	if n > math.MaxInt32 || int32(n) < least {
		return 0, fmt.Errorf("%s: %q is out of range: use %d to %d bytes", name, text, least, math.MaxInt32)
	}
	return int32(n), nil
}

// parseDuration reads a duration that is at least least.
func parseDuration(conf *service.ParsedConfig, least time.Duration, path ...string) (time.Duration, error) {
	d, err := conf.FieldDuration(path...)
	if err != nil {
		return 0, err
	}
	if d < least {
		return 0, fmt.Errorf("%s: %s is too short: use at least %s", path[len(path)-1], d, least)
	}
	return d, nil
}
