package kafka

import (
	"fmt"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/processors/internal/lint"
)

func outputSpec() *service.ConfigSpec {
	return service.NewConfigSpec().Beta().Categories("Services").
		Summary("Writes to topics of Kafka or Redpanda.").
		Description(`A batch is acknowledged when the brokers have taken all its messages. Where some fail, those alone are written again.

While ` + "`max_buffered_records`" + ` messages wait to be sent, further batches wait.

This is the output of the same name of Redpanda Connect with the same fields, apart from those that lint refuses.`).
		Fields(connectionFields()...).
		Fields(producerFields()...)
}

func init() {
	spec := outputSpec()
	rules.Add("output", lint.Component{Spec: spec, Check: func(conf *service.ParsedConfig) error { _, err := parseProducer(conf); return err }})
	must(service.RegisterBatchOutput(nameRedpanda, spec, func(conf *service.ParsedConfig, res *service.Resources) (service.BatchOutput, service.BatchPolicy, int, error) {
		policy, err := conf.FieldBatchPolicy(fieldBatching)
		if err != nil {
			return nil, policy, 0, err
		}
		inFlight, err := conf.FieldInt(fieldInFlight)
		if err == nil && inFlight < 1 {
			err = fmt.Errorf("%s: %d is too few: use at least 1", fieldInFlight, inFlight)
		}
		if err != nil {
			return nil, policy, 0, err
		}
		p, err := parseProducer(conf)
		if err != nil {
			return nil, policy, 0, err
		}
		return newWriter(p, res), policy, inFlight, nil
	}))
}
