// Command connect-windowed runs Benthos pipelines with event-time operators.
package main

import (
	"context"

	_ "go.etcd.io/bbolt"

	_ "github.com/redpanda-data/benthos/v4/public/components/io"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
	"github.com/redpanda-data/benthos/v4/public/service"
)

func main() { service.RunCLI(context.Background()) }
