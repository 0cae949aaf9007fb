package processors

import (
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/windowing/host"
)

// Fields of both hosts.
const (
	fieldHorizon = "position_horizon"
	nameWindowed = "windowed"
)

// hosted is a running host with what it holds.
type hosted struct {
	*host.Host
	built      *built
	state      *leased
	positioner *positioner
	position   positionConfig
	durable    bool
	log        *service.Logger
}

// hostFields are the fields of both hosts.
func hostFields() []*service.ConfigField {
	return []*service.ConfigField{
		service.NewStringField(fieldName).Default(nameWindowed).Advanced().
			Description("Under which the state lives in its file. A file may serve several hosts with different names."),
		stateField("State in memory does not survive a restart."),
		positionField(),
		durationField(fieldHorizon, "How long a gap in the positions of a partition stays open for rows that come late from the source.").Default("10m").Advanced(),
		service.NewProcessorListField(fieldProcessors).
			Description("The chain: a `watermark`, then operators, directly in this list. Other processors may stand between them."),
	}
}

// chainLint finds in the raw processors what the start would refuse.
const chainLint = `let operators = [ "tumbling_window" ]
let kinds = (this.processors | []).map_each(p -> p.keys().catch([]).filter(k -> k == "watermark" || $operators.contains(k)).index(0).catch("")).filter(k -> k != "")
root = if $kinds.length() > 0 && $kinds.index(0) != "watermark" { [ "processors: " + $kinds.index(0) + " has no watermark upstream: put a watermark before it in the same processors list" ] } else { [] }`

// open makes and starts the host of an adapter from its configuration.
func open(conf *service.ParsedConfig, res *service.Resources, cfg host.Config) (*hosted, error) {
	h := &hosted{log: res.Logger()}
	name, err := conf.FieldString(fieldName)
	if err != nil {
		return nil, err
	}
	state, err := conf.FieldString(fieldState)
	if err != nil {
		return nil, err
	}
	if h.position, err = parsePosition(conf); err != nil {
		return nil, err
	}
	if cfg.Horizon, err = parseDuration(conf, 10*time.Minute, fieldHorizon); err != nil {
		return nil, err
	}
	if h.built, err = buildChain(conf); err != nil {
		return nil, err
	}
	return h, h.start(res, state, name, cfg)
}

// start takes the state and starts the owner.
func (h *hosted) start(res *service.Resources, state, name string, cfg host.Config) error {
	var err error
	if h.positioner, err = newPositioner(h.position); err != nil {
		return err
	}
	if h.state, err = lease(res, state, name); err != nil {
		return err
	}
	h.durable = h.state != nil
	cfg.Name, cfg.Chain, cfg.Foreign = name, h.built.chain, h.built.foreign.run
	cfg.Positions, cfg.PositionText = h.position.mode, h.position.text()
	cfg.LagTTL = max(h.built.lag, lagTTL)
	cfg.Clock, cfg.Log, cfg.Meter, cfg.OnFault = clock(), res.Logger(), newMeter(res.Metrics()), reportFault
	if h.state != nil {
		cfg.Store, cfg.StateSize = h.state.space, h.state.size
	}
	if h.Host, err = host.Open(cfg); err != nil {
		h.state.release()
		return err
	}
	return nil
}

// batch makes what is offered of messages.
func (h *hosted) batch(messages service.MessageBatch) (*host.Batch, map[int]error) {
	b := &host.Batch{Rows: rowsOf(messages)}
	var errs map[int]error
	b.Entries, b.Bytes, errs = h.positioner.entries(messages)
	if n := len(messages); n > 0 {
		lag, ok := metaInt(messages[n-1], "kafka_lag")
		b.Lag = ok && lag > 0
	}
	return b, errs
}
