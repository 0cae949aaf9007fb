package drive

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// ErrRefused is what a sink answers when it was told to refuse.
var ErrRefused = errors.New("refused by the test")

// Message is a message that reached the output.
type Message struct {
	Payload []byte
	Meta    map[string]any
	Err     error
}

// Get is a metadata value as text, "" where there is none.
func (m Message) Get(key string) string {
	value, ok := m.Meta[key]
	if !ok {
		return ""
	}
	return fmt.Sprint(value)
}

// Sink is the output of a test. It keeps what it accepts.
type Sink struct {
	mu       sync.Mutex // protects the fields below
	messages []Message
	refuse   func(batch []Message) []int // numbers of the refused, nil: none
	refused  int
	wake     chan struct{}
	opened   sync.Once
	ready    chan struct{} // closed when the output is connected
}

func newSink() *Sink { return &Sink{wake: make(chan struct{}), ready: make(chan struct{})} }

// Refuse sets what decides about each batch: it gives the numbers of the messages
// to refuse. All of them is a plain error, some are a BatchError; nil accepts.
func (s *Sink) Refuse(decide func(batch []Message) []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = decide
}

// Refused counts the messages refused so far.
func (s *Sink) Refused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// Messages gives what was accepted so far.
func (s *Sink) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.messages[:len(s.messages):len(s.messages)]
}

// Wait returns true once the accepted messages satisfy the condition, and false
// if they did not within the time or the context ended before.
func (s *Sink) Wait(ctx context.Context, limit time.Duration, enough func([]Message) bool) bool {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	for {
		s.mu.Lock()
		messages, wake := s.messages, s.wake
		s.mu.Unlock()
		if enough(messages) {
			return true
		}
		select {
		case <-wake:
		case <-timeout.C:
			return false
		case <-ctx.Done():
			return enough(s.Messages())
		}
	}
}

// Connect implements service.BatchOutput.
func (s *Sink) Connect(context.Context) error {
	s.opened.Do(func() { close(s.ready) })
	return nil
}

// WriteBatch implements service.BatchOutput.
func (s *Sink) WriteBatch(_ context.Context, batch service.MessageBatch) error {
	got := make([]Message, len(batch))
	for i, msg := range batch {
		payload, err := msg.AsBytes()
		if err != nil {
			return err
		}
		got[i] = Message{Payload: append([]byte(nil), payload...), Meta: map[string]any{}, Err: msg.GetError()}
		_ = msg.MetaWalkMut(func(key string, value any) error {
			got[i].Meta[key] = value
			return nil
		})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var no []int
	if s.refuse != nil {
		no = s.refuse(got)
	}
	s.refused += len(no)
	if len(no) == len(got) && len(no) > 0 {
		return ErrRefused
	}
	refused := map[int]bool{}
	for _, i := range no {
		refused[i] = true
	}
	for i := range got {
		if !refused[i] {
			s.messages = append(s.messages, got[i])
		}
	}
	close(s.wake)
	s.wake = make(chan struct{})
	if len(no) == 0 {
		return nil
	}
	failure := service.NewBatchError(batch, ErrRefused)
	for _, i := range no {
		failure = failure.Failed(i, ErrRefused)
	}
	return failure
}

// Close implements service.BatchOutput.
func (s *Sink) Close(context.Context) error { return nil }
