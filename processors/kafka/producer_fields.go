package kafka

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/redpanda-data/benthos/v4/public/service"
)

const (
	fieldTopic        = "topic"
	fieldKey          = "key"
	fieldPartitioner  = "partitioner"
	fieldPartition    = "partition"
	fieldHeaders      = "metadata"
	fieldTimestamp    = "timestamp"
	fieldTimestampMs  = "timestamp_ms"
	fieldIdempotent   = "idempotent_write"
	fieldAcks         = "acks"
	fieldCompression  = "compression"
	fieldCreation     = "allow_auto_topic_creation"
	fieldTimeout      = "timeout"
	fieldMessageMax   = "max_message_bytes"
	fieldWriteMax     = "broker_write_max_bytes"
	fieldRecords      = "max_buffered_records"
	fieldBytes        = "max_buffered_bytes"
	fieldRequests     = "max_in_flight_requests"
	fieldRetries      = "record_retries"
	fieldDelivery     = "record_delivery_timeout"
	fieldInFlight     = "max_in_flight"
	fieldBatching     = "batching"
	partitionerManual = "manual"
)

func producerFields() []*service.ConfigField {
	return []*service.ConfigField{
		service.NewInterpolatedStringField(fieldTopic).Description("The topic of each message."),
		service.NewInterpolatedStringField(fieldKey).Optional().Description("The key of each message. Messages of one key go to one partition with the partitioner `murmur2_hash`."),
		choiceField(fieldPartitioner, partitionerNames...).Optional().Advanced().
			Description("How a partition is chosen: `murmur2_hash` by the key as Kafka's own clients do, for messages without a key at random; `round_robin`; `least_backup`, the partition with the fewest messages waiting; `manual`, see `partition`. The default is `murmur2_hash`."),
		service.NewInterpolatedStringField(fieldPartition).Optional().Advanced().
			Description("The number of the partition, with the partitioner `manual`, which needs it.").Example(`${! metadata("partition") }`),
		service.NewMetadataFilterField(fieldHeaders).Optional().Description("Which metadata become headers, as text. None by default."),
		service.NewInterpolatedStringField(fieldTimestamp).Optional().Deprecated().Description("The timestamp in seconds. Use `timestamp_ms`."),
		service.NewInterpolatedStringField(fieldTimestampMs).Optional().Advanced().
			Description("The timestamp of each message in milliseconds since 1970. The time of writing by default.").Example(`${! timestamp_unix_milli() }`),
		service.NewBoolField(fieldIdempotent).Default(true).Advanced().
			Description("The brokers take each message once, also when it is sent again after a lost answer. It needs `acks: all` and one request in flight."),
		choiceField(fieldAcks, "all", "leader", "none").Default("all").Advanced().
			Description("Whose acknowledgement a write needs: of all replicas in sync, of the leader, of nobody."),
		choiceField(fieldCompression, compressionNames...).Optional().Advanced().
			Description("How batches are compressed. By default `snappy` where the brokers know it, else `none`."),
		service.NewBoolField(fieldCreation).Default(true).Advanced().Description("Topics that do not exist may be created, if the brokers are set up so."),
		service.NewDurationField(fieldTimeout).Default("10s").Advanced().Description("How long the brokers may take for a write."),
		sizeField(fieldMessageMax, "The largest batch sent, before compression; a larger message is refused.", "1MiB"),
		sizeField(fieldWriteMax, "The largest request sent to a broker.", "100MiB"),
		service.NewIntField(fieldRecords).Default(10000).Advanced().Description("How many messages may wait to be sent; more wait with their batch."),
		sizeField(fieldBytes, "How much may wait to be sent; `0` is no limit.", "0"),
		service.NewIntField(fieldRequests).Default(1).Advanced().Description("How many requests may be in flight to a broker. More than one needs `idempotent_write: false` and may reorder."),
		service.NewIntField(fieldRetries).Default(0).Advanced().Description("How often a message is sent again before its batch fails. `0` is no limit."),
		service.NewDurationField(fieldDelivery).Default("0s").Advanced().Description("How long a message may take before its batch fails. `0s` is no limit."),
		service.NewIntField(fieldInFlight).Default(256).Description("How many batches may be written at once."),
		service.NewBatchPolicyField(fieldBatching),
	}
}

var partitionerNames = []string{"murmur2_hash", "round_robin", "least_backup", partitionerManual}

var partitioners = map[string]func() kgo.Partitioner{
	"murmur2_hash":    func() kgo.Partitioner { return kgo.StickyKeyPartitioner(nil) },
	"round_robin":     kgo.RoundRobinPartitioner,
	"least_backup":    kgo.LeastBackupPartitioner,
	partitionerManual: kgo.ManualPartitioner,
}

var compressionNames = []string{"lz4", "snappy", "gzip", "none", "zstd"}

var compressions = map[string]kgo.CompressionCodec{
	"lz4": kgo.Lz4Compression(), "snappy": kgo.SnappyCompression(), "gzip": kgo.GzipCompression(),
	"none": kgo.NoCompression(), "zstd": kgo.ZstdCompression(),
}

var acknowledgers = map[string]kgo.Acks{"all": kgo.AllISRAcks(), "leader": kgo.LeaderAck(), "none": kgo.NoAck()}

// producer is where and how to write.
type producer struct {
	connection
	topic, key, partition *service.InterpolatedString // key and partition may be nil
	stamp                 *service.InterpolatedString // nil for the time of writing
	unit                  time.Duration               // of stamp
	headers               *service.MetadataFilter
	options               []kgo.Opt
	limit                 int32 // max_message_bytes
}

func parseProducer(conf *service.ParsedConfig) (p producer, err error) {
	if p.connection, err = parseConnection(conf); err != nil {
		return p, err
	}
	p.options = p.connection.options
	for _, parse := range []func(*service.ParsedConfig) error{p.parseMessage, p.parsePartition, p.parseSafety, p.parseLimits} {
		if err := parse(conf); err != nil {
			return p, err
		}
	}
	return p, kgo.ValidateOpts(p.options...)
}

// optionalString reads an interpolated string that may be absent.
func optionalString(conf *service.ParsedConfig, name string) (*service.InterpolatedString, error) {
	if !conf.Contains(name) {
		return nil, nil
	}
	return conf.FieldInterpolatedString(name)
}

// parseMessage reads what becomes of a message.
func (p *producer) parseMessage(conf *service.ParsedConfig) (err error) {
	if p.topic, err = conf.FieldInterpolatedString(fieldTopic); err != nil {
		return err
	}
	if topic, static := p.topic.Static(); static && topic == "" {
		return fmt.Errorf("%s %w: name one", fieldTopic, errNothing)
	}
	if p.key, err = optionalString(conf, fieldKey); err != nil {
		return err
	}
	if p.stamp, err = optionalString(conf, fieldTimestampMs); err != nil {
		return err
	}
	p.unit = time.Millisecond
	seconds, err := optionalString(conf, fieldTimestamp)
	if err != nil {
		return err
	}
	switch {
	case seconds != nil && p.stamp != nil:
		return fmt.Errorf("%s: goes without the deprecated %s: leave that out", fieldTimestampMs, fieldTimestamp)
	case seconds != nil:
		p.stamp, p.unit = seconds, time.Second
	}
	if conf.Contains(fieldHeaders) {
		p.headers, err = conf.FieldMetadataFilter(fieldHeaders)
	}
	return err
}

// parsePartition reads how a partition is chosen.
func (p *producer) parsePartition(conf *service.ParsedConfig) (err error) {
	word := partitionerNames[0]
	if conf.Contains(fieldPartitioner) {
		if word, err = parseChoice(conf, fieldPartitioner, partitionerNames...); err != nil {
			return err
		}
	}
	if p.partition, err = optionalString(conf, fieldPartition); err != nil {
		return err
	}
	switch manual := word == partitionerManual; {
	case manual && p.partition == nil:
		return fmt.Errorf("%s: is missing: %s: %s needs it", fieldPartition, fieldPartitioner, partitionerManual)
	case !manual && p.partition != nil:
		return fmt.Errorf("%s: goes with %s: %s only, not with %s", fieldPartition, fieldPartitioner, partitionerManual, word)
	}
	p.options = append(p.options, kgo.RecordPartitioner(partitioners[word]()))
	return nil
}

// parseSafety reads what a write has to be sure of.
func (p *producer) parseSafety(conf *service.ParsedConfig) error {
	idempotent, err := conf.FieldBool(fieldIdempotent)
	if err != nil {
		return err
	}
	acks, err := parseChoice(conf, fieldAcks, "all", "leader", "none")
	if err != nil {
		return err
	}
	requests, err := conf.FieldInt(fieldRequests)
	switch {
	case err != nil:
		return err
	case requests < 1:
		return fmt.Errorf("%s: %d is too few: use at least 1", fieldRequests, requests)
	case idempotent && acks != "all":
		return fmt.Errorf("%s: %s does not go with %s: use all, or set %s: false", fieldAcks, acks, fieldIdempotent, fieldIdempotent)
	case idempotent && requests != 1:
		return fmt.Errorf("%s: %d does not go with %s: use 1, or set %s: false", fieldRequests, requests, fieldIdempotent, fieldIdempotent)
	}
	p.options = append(p.options, kgo.RequiredAcks(acknowledgers[acks]))
	if !idempotent {
		p.options = append(p.options, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(requests))
	}
	create, err := conf.FieldBool(fieldCreation)
	if err != nil {
		return err
	}
	if create {
		p.options = append(p.options, kgo.AllowAutoTopicCreation())
	}
	if !conf.Contains(fieldCompression) {
		return nil
	}
	word, err := parseChoice(conf, fieldCompression, compressionNames...)
	if err != nil {
		return err
	}
	p.options = append(p.options, kgo.ProducerBatchCompression(compressions[word]))
	return nil
}

// parseLimits reads what bounds sizes, numbers and times.
func (p *producer) parseLimits(conf *service.ParsedConfig) (err error) {
	if p.limit, err = parseSize(conf, 1<<10, fieldMessageMax); err != nil {
		return err
	}
	write, err := parseSize(conf, 1<<10, fieldWriteMax)
	if err != nil {
		return err
	}
	if p.limit > write {
		return fmt.Errorf("%s: %d bytes are more than %s, which is %d: lower the one or raise the other", fieldMessageMax, p.limit, fieldWriteMax, write)
	}
	buffered, err := parseSize(conf, 0, fieldBytes)
	if err != nil {
		return err
	}
	records, err := conf.FieldInt(fieldRecords)
	switch {
	case err != nil:
		return err
	case records < 1:
		return fmt.Errorf("%s: %d is too few: use at least 1", fieldRecords, records)
	}
	timeout, err := parseDuration(conf, 100*time.Millisecond, fieldTimeout)
	if err != nil {
		return err
	}
	retries, err := conf.FieldInt(fieldRetries)
	switch {
	case err != nil:
		return err
	case retries < 0:
		return fmt.Errorf("%s: %d is negative: use 0 for no limit", fieldRetries, retries)
	}
	delivery, err := parseDuration(conf, 0, fieldDelivery)
	if err != nil {
		return err
	}
	p.options = append(p.options, kgo.ProducerBatchMaxBytes(p.limit), kgo.BrokerMaxWriteBytes(write), kgo.MaxBufferedRecords(records),
		kgo.ProduceRequestTimeout(timeout), kgo.ProducerLinger(0))
	if buffered > 0 {
		p.options = append(p.options, kgo.MaxBufferedBytes(int(buffered)))
	}
	if retries > 0 {
		p.options = append(p.options, kgo.RecordRetries(retries))
	}
	if delivery > 0 {
		p.options = append(p.options, kgo.RecordDeliveryTimeout(delivery))
	}
	return nil
}
