package drive

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// stopLimit is how long a pipeline may take to stop gracefully.
const stopLimit = 2 * time.Minute

// Pipe is a running pipeline.
type Pipe struct {
	Feed  *Feed
	Sink  *Sink
	Meter *Meter
	Logs  *Logs

	id     string
	stream *service.Stream
	ended  context.Context // done when the stream is
	result error           // of the stream, readable then
}

var lastID atomic.Int64

// Start builds a pipeline and runs it until its output is connected, which is
// constructed last, or gives the error that ended the start. In the configuration the words of FeedConfig and
// SinkConfig stand for the input and the output of the test.
func Start(conf func(feed, sink map[string]any) map[string]any) (*Pipe, error) {
	id := fmt.Sprintf("pipe-%d", lastID.Add(1))
	ref := map[string]any{"id": id}
	whole := conf(map[string]any{feedName: ref}, map[string]any{sinkName: ref})
	whole["metrics"] = map[string]any{meterName: ref}
	text, err := json.Marshal(whole) // JSON is YAML
	if err != nil {
		return nil, err
	}
	p := &Pipe{Feed: newFeed(), Sink: newSink(), Meter: newMeter(), Logs: &Logs{}, id: id}
	register(id, p.Feed, p.Sink, p.Meter)
	b := service.NewStreamBuilder()
	b.SetLogger(slog.New(slog.NewTextHandler(p.Logs, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err := b.SetYAML(string(text)); err != nil {
		forget(id)
		return nil, fmt.Errorf("configuration: %w\n%s", err, text)
	}
	if p.stream, err = b.Build(); err != nil {
		forget(id)
		return nil, err
	}
	if err := p.run(); err != nil {
		if p.ended.Err() == nil {
			_ = p.stream.StopWithin(stopLimit)
		}
		return nil, err
	}
	return p, nil
}

func (p *Pipe) run() error {
	ended, end := context.WithCancel(context.Background())
	p.ended = ended
	go func() {
		p.result = p.stream.Run(context.Background())
		forget(p.id)
		end()
	}()
	select {
	case <-p.Sink.ready:
		return nil
	case <-p.ended.Done():
		if p.result == nil {
			return fmt.Errorf("the stream ended before its output was connected\n%s", p.Logs)
		}
		return p.result
	case <-time.After(stopLimit):
		return fmt.Errorf("the output is not connected after %s\n%s", stopLimit, p.Logs)
	}
}

// Ended is done when the stream has ended.
func (p *Pipe) Ended() context.Context { return p.ended }

// Stop stops the pipeline gracefully and waits for it.
func (p *Pipe) Stop() error {
	if p.ended.Err() == nil {
		if err := p.stream.StopWithin(stopLimit); err != nil {
			return fmt.Errorf("stop: %w\n%s", err, p.Logs)
		}
	}
	return p.WaitEnd(stopLimit)
}

// StopWithin stops the pipeline, by force towards the end of the time, and gives
// what Benthos says of it.
func (p *Pipe) StopWithin(limit time.Duration) error { return p.stream.StopWithin(limit) }

// WaitEnd waits for the end of the stream and gives its error.
func (p *Pipe) WaitEnd(limit time.Duration) error {
	select {
	case <-p.ended.Done():
		return p.result
	case <-time.After(limit):
		return fmt.Errorf("the stream has not ended after %s\n%s", limit, p.Logs)
	}
}

// Logs collects the log of a pipeline.
type Logs struct {
	mu   sync.Mutex // protects text
	text []byte
}

// Write implements io.Writer.
func (l *Logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, b...)
	return len(b), nil
}

func (l *Logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}
