package kafka

import (
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/processors"
	"github.com/connect-windowed/connect-windowed/processors/internal/lint"
)

// hostedWindow is how much of a partition may be in flight inside of a host, in
// buffers of a partition. The host acknowledges after a commit, which is for many
// batches at once.
const hostedWindow = 4

// nameRedpanda is the name of the input and of the output.
const nameRedpanda = "redpanda"

func inputSpec() *service.ConfigSpec {
	return service.NewConfigSpec().Beta().Categories("Services").
		Summary("Consumes topics of Kafka or Redpanda.").
		Description(`The messages of a partition come in order: a batch holds messages of one partition, and the next batch of that partition comes when the one before is acknowledged. Inside of the ` + "`windowed`" + ` input, which refuses nothing, it comes at once; directly inside, without ` + "`processors`" + ` of its own, batches are larger too, up to 256 KiB or 2048 messages where ` + "`partition_buffer_bytes`" + ` allows it, and the host lets go of messages when it has applied them, long before they are acknowledged. Offsets are committed as far as every message before is acknowledged, every ` + "`commit_period`" + `, when a partition moves to another member of the group, and at a stop.

Each message carries the metadata kafka_key, kafka_topic, kafka_partition, kafka_offset, kafka_lag, kafka_timestamp_ms, kafka_timestamp_unix, kafka_tombstone_message, and its headers. A header of such a name does not replace it. As a key of an operator (` + "`key: '@kafka_key'`" + `) the key of a record that has none is null, and an empty one is a text.

` + "`kafka_lag`" + ` is how many messages the partition held behind this one when it was fetched. The metric ` + "`redpanda_lag`" + ` is how many it holds behind the last that is acknowledged.

This is the input of the same name of Redpanda Connect with the same fields, apart from those that lint refuses.`).
		Fields(connectionFields()...).
		Fields(consumerFields()...)
}

func init() {
	spec := inputSpec()
	rules.Add("input", lint.Component{Spec: spec, Check: func(conf *service.ParsedConfig) error { _, err := parseConsumer(conf); return err }})
	must(service.RegisterBatchInput(nameRedpanda, spec, func(conf *service.ParsedConfig, res *service.Resources) (service.BatchInput, error) {
		c, err := parseConsumer(conf)
		if err != nil {
			return nil, err
		}
		if processors.InsideHost() {
			c.shelf.window = hostedWindow * c.shelf.buffer
		}
		over := processors.NewHandover(nameRedpanda, res)
		if over != nil {
			c.shelf.handOver()
		}
		r := newReader(c, res)
		r.over = over
		r.moves = processors.NewPartitionMoves()
		return r, nil
	}))
}
