package kafka

import (
	"context"
	"time"
)

// roomWait is how long the poller waits for a full lane before it has the client
// stop fetching that partition. The client throws away what it has fetched of a
// partition ahead of time when that is paused, so a lane that is only busy is not.
const roomWait = 200 * time.Millisecond

// makeRoom returns when every lane is below its limit or its partition is paused.
func (s *shelf) makeRoom(ctx context.Context) {
	timer := time.NewTimer(roomWait)
	defer timer.Stop()
	for s.full(false) {
		select {
		case <-s.room:
		case <-timer.C:
			s.full(true)
			return
		case <-ctx.Done():
			return
		}
	}
}

// full reports whether lanes are beyond their limit whose partition is not paused,
// and pauses those if it is told to.
func (s *shelf) full(pause bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := false
	for _, of := range s.lanes {
		for _, l := range of {
			if l.paused || l.bytes <= s.buffer {
				continue
			}
			found = true
			if pause {
				l.paused = true
				s.valve.Pause(l.topic, l.partition, true)
			}
		}
	}
	return found
}

// freeze stops handing out records of partitions; nil means all.
func (s *shelf) freeze(of map[string][]int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.each(of, func(l *lane) { l.frozen = true })
}

// drain waits until nothing of frozen partitions is in flight.
func (s *shelf) drain(ctx context.Context, of map[string][]int32) error {
	for s.inFlight(of) > 0 {
		select {
		case <-s.room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// inFlight counts the batches of partitions that wait for an acknowledgement.
// Refused ones wait for nobody.
func (s *shelf) inFlight(of map[string][]int32) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.each(of, func(l *lane) { n += l.flight.waiting - len(l.again) })
	return n
}

// drop closes the lanes of partitions; nil means all. It gives how many batches
// were still in flight.
func (s *shelf) drop(of map[string][]int32) (unsettled int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.each(of, func(l *lane) {
		unsettled += l.flight.waiting
		if l.paused {
			s.valve.Pause(l.topic, l.partition, false)
		}
		l.frozen, l.closed = true, true
		l.chunks, l.again, l.bytes = nil, nil, 0
		delete(s.lanes[l.topic], l.partition)
	})
	signal(s.room)
	return unsettled
}

// each calls visit with the lanes of partitions, nil meaning all. The lock is held.
func (s *shelf) each(of map[string][]int32, visit func(*lane)) {
	if of == nil {
		for _, lanes := range s.lanes {
			for _, l := range lanes {
				visit(l)
			}
		}
		return
	}
	for topic, partitions := range of {
		for _, p := range partitions {
			if l := s.lanes[topic][p]; l != nil {
				visit(l)
			}
		}
	}
}
