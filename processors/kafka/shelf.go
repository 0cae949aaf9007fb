package kafka

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// valve is what the shelf tells the client. The calls come with the shelf's lock
// held and must not call back.
type valve interface {
	// Mark makes a position known that may be committed.
	Mark(topic string, partition int32, position kgo.EpochOffset)
	// Pause has the client stop fetching a partition, or go on.
	Pause(topic string, partition int32, on bool)
}

// shelfConfig are the limits of a shelf.
type shelfConfig struct {
	buffer int  // bytes of a partition that may wait; the last fetch may go past it
	yield  int  // bytes of a batch
	most   int  // records of a batch; 0: any number
	window int  // bytes in flight beyond which a partition hands out no further batch; 0: one batch
	replay bool // refused records are offered again
	direct bool // there is no group: lanes come with the first record
}

// shelf holds the lanes of all partitions. Any goroutine may call it.
type shelf struct {
	shelfConfig
	valve valve
	wake  chan struct{} // something may be ready
	room  chan struct{} // a lane fell below its limit, or is gone

	mu    sync.Mutex // protects what follows
	lanes map[string]map[int32]*lane
	queue []*lane // that may have something, in turn
}

func newShelf(c shelfConfig, v valve) *shelf {
	return &shelf{shelfConfig: c, valve: v, lanes: map[string]map[int32]*lane{},
		wake: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// open makes the lane of a partition that was assigned.
func (s *shelf) open(topic string, partition int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened(topic, partition)
}

func (s *shelf) opened(topic string, partition int32) *lane {
	of := s.lanes[topic]
	if of == nil {
		of = map[int32]*lane{}
		s.lanes[topic] = of
	}
	l := &lane{topic: topic, partition: partition, next: unknown}
	of[partition] = l
	return l
}

// put adds records that were fetched. It reports false where the partition is not
// ours.
func (s *shelf) put(topic string, partition int32, records []*kgo.Record, end int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lanes[topic][partition]
	if l == nil && s.direct {
		l = s.opened(topic, partition)
	}
	if l == nil {
		return false
	}
	l.put(records, end)
	s.enqueue(l)
	return true
}

// enqueue has a lane take its turn if there is something in it.
func (s *shelf) enqueue(l *lane) {
	if l.queued || !l.ready(s.window) {
		return
	}
	l.queued = true
	s.queue = append(s.queue, l)
	signal(s.wake)
}

// errStopped says that nothing more comes from a shelf.
var errStopped = errors.New("the shelf is out of use")

// next waits for a parcel, until stop is closed.
func (s *shelf) next(ctx context.Context, stop <-chan struct{}) (*parcel, error) {
	for {
		p, wait := s.take(time.Now())
		if p != nil {
			return p, nil
		}
		if err := s.sleep(ctx, stop, wait); err != nil {
			return nil, err
		}
	}
}

// sleep waits until something may be ready, for at most the time given unless
// that is 0.
func (s *shelf) sleep(ctx context.Context, stop <-chan struct{}, most time.Duration) error {
	var due <-chan time.Time
	if most > 0 {
		timer := time.NewTimer(most)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-s.wake:
	case <-due:
	case <-stop:
		return errStopped
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// take gives the parcel whose turn it is, or how long to wait until one is due, 0
// where none is.
func (s *shelf) take(now time.Time) (*parcel, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var wait time.Duration
	for range len(s.queue) {
		l := s.queue[0]
		s.queue = s.queue[1:]
		l.queued = false
		if !l.ready(s.window) {
			continue
		}
		if left := l.at.Sub(now); len(l.again) > 0 && left > 0 {
			if wait == 0 || left < wait {
				wait = left
			}
			l.queued = true
			s.queue = append(s.queue, l)
			continue
		}
		p := l.take(s.yield, s.most)
		s.eased(l)
		s.enqueue(l)
		return p, 0
	}
	return nil, wait
}

// eased lets the client fetch a partition again whose lane is half empty.
func (s *shelf) eased(l *lane) {
	if l.bytes > s.buffer {
		return
	}
	if l.paused && l.bytes <= s.buffer/2 {
		l.paused = false
		s.valve.Pause(l.topic, l.partition, false)
	}
	signal(s.room)
}

// settle takes the outcome of a parcel: failed are the indexes of the records
// that were refused, ascending.
func (s *shelf) settle(p *parcel, failed []int, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := p.lane
	if l.closed || p.done {
		return
	}
	if !s.replay {
		failed = nil // refused records are dropped, as the setting says
	}
	if l.flight.acknowledge(p, failed) {
		s.valve.Mark(l.topic, l.partition, l.flight.position)
	}
	if !p.done {
		p.attempts++
		l.refuse(p)
		l.at = now.Add(backOff(p.attempts))
	}
	s.enqueue(l)
	if l.frozen {
		signal(s.room)
	}
}

// backOff is how long a parcel waits that was refused so many times.
func backOff(attempts int) time.Duration {
	if attempts <= 2 {
		return 0
	}
	return min(time.Second, time.Millisecond<<min(attempts, 20))
}
