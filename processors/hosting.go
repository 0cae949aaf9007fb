package processors

import (
	"context"
	"fmt"
	"math"
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
		memoryBudgetField(),
		service.NewProcessorListField(fieldProcessors).
			Description("The chain: a `watermark`, then operators, directly in this list. Other processors may stand between them."),
	}
}

// hostConfig is the setting of a host as the user wrote it.
type hostConfig struct {
	name, state string
	position    positionConfig
	horizon     time.Duration
	memory      int64 // bytes of state in memory, 0: no limit
}

// parseHost reads the fields of both hosts, apart from the list.
func parseHost(conf *service.ParsedConfig) (c hostConfig, err error) {
	if c.name, err = conf.FieldString(fieldName); err != nil {
		return c, err
	}
	if c.name == "" {
		return c, fmt.Errorf("%s: must not be empty: leave it out for %q", fieldName, nameWindowed)
	}
	if c.state, err = conf.FieldString(fieldState); err != nil {
		return c, err
	}
	if c.state == "" {
		return c, errNoState
	}
	if c.position, err = parsePosition(conf); err != nil {
		return c, err
	}
	if c.position.mode == host.Ordinal && !conf.Contains(fieldOnEnd) { // only the input has that field
		return c, errOrdinal
	}
	if c.horizon, err = parseDuration(conf, 10*time.Minute, fieldHorizon); err != nil {
		return c, err
	}
	c.memory, err = parseMemoryBudget(conf, c.state)
	return c, err
}

// open makes and starts the host of an adapter from its configuration.
func open(conf *service.ParsedConfig, res *service.Resources, cfg host.Config) (*hosted, error) {
	c, err := parseHost(conf)
	if err != nil {
		return nil, err
	}
	h := &hosted{log: res.Logger(), position: c.position}
	cfg.Horizon = c.horizon
	if h.built, err = buildChain(conf, res, c.memory); err != nil {
		return nil, err
	}
	if err = h.start(res, c.state, c.name, cfg); err != nil {
		h.built.close(context.Background())
		return nil, err
	}
	for _, op := range h.built.operators {
		if op.doubt != "" {
			h.log.Warnf("%s %q: %s", op.kind, op.name, op.doubt)
		}
	}
	return h, nil
}

// close stops the host, then gives back what it holds.
func (h *hosted) close(ctx context.Context) error {
	err := h.Host.Close(ctx)
	h.built.close(ctx)
	h.state.release()
	return err
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
		if memory := h.built.memory; memory > 0 {
			h.state.space.Bound(int(min(memory, math.MaxInt) / logShare))
			pending := max(memory/pendingShare, leastPending)
			cfg.Limits.CommitBytes, cfg.Limits.MailboxBytes = pending, pending
		}
	}
	if h.Host, err = host.Open(cfg); err != nil {
		h.state.release()
		return err
	}
	return nil
}

// offered makes what is offered of what an input gave.
func (h *hosted) offered(messages service.MessageBatch) (*host.Batch, map[int]error) {
	handed := takeHanded(messages)
	if handed == nil {
		return h.batch(messages)
	}
	takes := h.positioner.takes(handed)
	messages = handed.messages(takes && h.built.bare)
	b, errs := h.rows(messages), map[int]error(nil)
	if b.Lag, b.Flows = handed.Lag, handed.Lag; takes {
		b.Bytes = h.positioner.handed(handed, b.Entries)
	} else {
		b.Bytes, errs = h.positioner.entries(messages, b.Entries)
	}
	if h.built.memory == 0 && h.built.sums() {
		b.Freed = b.Bytes - b.Bytes/summedShare
	}
	return b, errs
}

// summedShare is the part of the bytes of messages that a window operator, which sums
// them up, is expected to put into its state until the next commit.
const summedShare = 4

// batch makes what is offered of messages.
func (h *hosted) batch(messages service.MessageBatch) (*host.Batch, map[int]error) {
	b := h.rows(messages)
	var errs map[int]error
	b.Bytes, errs = h.positioner.entries(messages, b.Entries)
	if n := len(messages); n > 0 {
		lag, ok := metaInt(messages[n-1], "kafka_lag")
		b.Lag = ok && lag > 0
	}
	return b, errs
}

// rows makes a batch with the rows of messages, without positions.
func (h *hosted) rows(messages service.MessageBatch) *host.Batch {
	m := takeBatchMemory(len(messages))
	fillRows(m.rows, messages)
	return &host.Batch{Rows: m.rows, Entries: m.entries, Release: m.release}
}
