package processors

import (
	"context"
	"fmt"
	"slices"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/windowing/host"
)

// Handover is the way by which an input that stands directly in the `input` of a
// `windowed` host, with no processors of its own, hands its batches to the host.
//
// Benthos keeps what an input reads until it is acknowledged, and gives each message
// a span and a copy of its own on the way. A host acknowledges with its next commit,
// for hundreds of thousands of messages at once, and needs their bytes only until it
// has applied them. So one message goes the usual way in the place of a batch; the
// host takes the batch out of it, and nobody else holds that.
type Handover struct{ received *service.MetricCounter }

// Handed is a batch that is handed over: records of one partition, at least one, in
// the order of their offsets. The host lets go of it when it has applied them.
type Handed struct {
	Partition string // as positions name it, <topic>/<partition>; "" where there is none
	Lag       bool   // the partition holds more behind the last of them
	Records   Records

	like *service.Message // that went in its place: its metadata is that of all records
}

// Records are what messages are made of. The host calls them from several goroutines.
type Records interface {
	Len() int
	// Record gives the payload of a record and its offset in the partition.
	Record(i int) (payload []byte, offset int64)
	// Describe sets the metadata of a record on its message, which has what was set
	// on the way on the message in the place of the batch.
	Describe(i int, m *service.Message)
}

// NewHandover gives the way to the host of the input under construction, whose name
// is kind. It is nil where there is no host or something stands between, which could
// see the messages or the size of batches. An input calls it from its constructor, on
// the goroutine that constructs it.
func NewHandover(kind string, res *service.Resources) *Handover {
	return handoverWhere(res, func(n *nursery) bool { return n.alone == kind })
}

// newScannerHandover is NewHandover for the scanner of an input of which it is known
// that it says the same of all messages of a batch.
func newScannerHandover(kind string, res *service.Resources) *Handover {
	return handoverWhere(res, func(n *nursery) bool { return n.scanner == kind })
}

func handoverWhere(res *service.Resources, direct func(n *nursery) bool) *Handover {
	n := nurseryHere()
	if n == nil || !n.input || !direct(n) || traces(res) {
		return nil
	}
	return &Handover{received: res.Metrics().NewCounter("input_received")}
}

// traces says that spans are recorded: then each message goes its own way.
func traces(res *service.Resources) bool {
	return fmt.Sprintf("%T", res.OtelTracer()) != "noop.TracerProvider"
}

// Batch gives what goes the usual way in the place of a batch. It is to be
// acknowledged as the batch is; the host never refuses it.
func (h *Handover) Batch(of *Handed) service.MessageBatch {
	h.received.Incr(int64(of.Records.Len() - 1)) // the one is counted by Benthos
	ctx := context.WithValue(context.Background(), handedKey{}, &envelope{of})
	return service.MessageBatch{service.NewMessage(nil).WithContext(ctx)}
}

// envelope is what travels in the context. It outlives what is inside.
type envelope struct{ handed *Handed }

type handedKey struct{}

// takeHanded takes the batch out of what goes in its place, nil for messages that
// are messages.
func takeHanded(batch service.MessageBatch) *Handed {
	if len(batch) != 1 {
		return nil
	}
	e, _ := batch[0].Context().Value(handedKey{}).(*envelope)
	if e == nil || e.handed == nil {
		return nil
	}
	handed := e.handed
	e.handed, handed.like = nil, batch[0]
	return handed
}

// messages makes the messages. Bare ones have no metadata until describe gives it.
func (h *Handed) messages(bare bool) service.MessageBatch {
	batch := make(service.MessageBatch, h.Records.Len())
	var like *service.Message
	if bare {
		like = service.NewMessage(nil).WithContext(context.WithValue(context.Background(), bareKey{}, h))
	}
	for i := range batch {
		payload, _ := h.Records.Record(i)
		if bare {
			batch[i] = like.Copy() // with its context
			batch[i].SetBytes(payload)
			continue
		}
		batch[i] = service.NewMessage(payload)
		h.describe(i, batch[i])
	}
	return batch
}

// takes says that positions can be told without the messages of a batch.
func (p *positioner) takes(h *Handed) bool {
	return p.config.mode != host.Offsets || p.config.kafka() && h.Partition != ""
}

// handed is entries for a batch that the positioner takes. No processor stands
// between the input and the host, so what the input says is what the metadata of the
// messages would say.
func (p *positioner) handed(h *Handed, entries []host.Entry) (bytes int64) {
	path := ""
	if p.config.mode == host.Ordinal {
		p.mu.Lock()
		defer p.mu.Unlock()
		path, _ = h.like.MetaGet(pathKey)
	}
	for i := range entries {
		payload, offset := h.Records.Record(i)
		pos := &entries[i].Position
		switch p.config.mode {
		case host.None:
		case host.Ordinal:
			p.ordinal(path, pos)
		default:
			pos.Partition, pos.Offset, pos.Known = h.Partition, offset, true
		}
		pos.Hash = host.Fingerprint(payload)
		bytes += int64(len(payload))
	}
	return bytes
}

type bareKey struct{}

// bareOf gives the batch of a message that has no metadata yet, nil for others.
func bareOf(m *service.Message) *Handed {
	h, _ := m.Context().Value(bareKey{}).(*Handed)
	return h
}

// described gives a message with its metadata, which is number i of its batch.
func described(i int32, m *service.Message) *service.Message {
	h := bareOf(m)
	if h == nil {
		return m
	}
	m = m.WithContext(context.Background())
	h.describe(int(i), m)
	return m
}

// describe sets all the metadata of a record.
func (h *Handed) describe(i int, m *service.Message) {
	_ = h.like.MetaWalkMut(func(key string, value any) error {
		m.MetaSetMut(key, value)
		return nil
	})
	h.Records.Describe(i, m)
}

// standsAlone gives the kind of an input that has no processors, "" for others.
func standsAlone(raw any) string {
	m, _ := plain(raw).(map[string]any)
	kind := ""
	for key, v := range m {
		switch list, _ := plain(v).([]any); {
		case key == "label", key == "processors" && len(list) == 0:
		case kind != "":
			return ""
		default:
			kind = key
		}
	}
	return kind
}

// uniform are the inputs that set the same metadata on all messages of a batch.
var uniform = []string{"file", "stdin"}

// scannerAlone gives the kind of the scanner that an input has of its own, where the
// input has no processors and is uniform; "" for others.
func scannerAlone(raw any) string {
	kind := standsAlone(raw)
	if !slices.Contains(uniform, kind) {
		return ""
	}
	fields, _ := plain(raw).(map[string]any)
	fields, _ = plain(fields[kind]).(map[string]any)
	scanner, _ := plain(fields["scanner"]).(map[string]any)
	if len(scanner) != 1 {
		return ""
	}
	for kind := range scanner {
		return kind
	}
	return ""
}
