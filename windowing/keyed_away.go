package windowing

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
)

// keyedAway is what a keyed state with a bound knows of the keys that are not in
// memory.
type keyedAway struct {
	count  int         // keys on disk only
	filter filter      // of them, and of some that are in memory or gone
	listed int         // keys that were put into the filter
	dead   int         // of those the ones that are gone
	ring   []*keyedKey // what is in memory, and some that are not any more
	hand   int         // the next one to be looked at

	buried map[string]int64 // keys that are gone, by the Save that deletes them
	graves []grave          // the same, in the order of their Saves

	more    bool           // there may be keys in the index from next on
	next    watermark.Time // nothing before it in the index needs to be brought back
	cleared bool           // everything is to be deleted with the next Save

	rebuilt *filter // the filter that takes the place of one with many dead keys
	scanned []byte  // the keys up to it are in rebuilt
	taken   int     // keys in rebuilt
}

type grave struct {
	key  string
	save int64
}

const (
	unsaved     = math.MaxInt64 // the Save that deletes a key is still to come
	filterChunk = 1 << 20       // keys of one part of a filter that is made of records
	indexChunk  = 1024          // keys that are brought back at once
	scanChunk   = 4096          // records that a step reads for a new filter
	leastDead   = 1 << 12
	leastRing   = 1 << 10
	timerBytes  = 128
)

// bytes is about what a key takes in memory.
func (it *keyedKey) bytes() int64 {
	return entryBytes + int64(len(it.key)+len(it.state)) + timerBytes*int64(len(it.timers)+1)
}

// enter puts a key into memory.
func (k *Keyed) enter(it *keyedKey) {
	k.keys[it.key] = it
	it.asked = true
	if k.bounded() {
		k.away.ring = append(k.away.ring, it)
	}
}

// find gives a key, nil where it is not there. It is brought back to memory where it
// is away.
func (k *Keyed) find(key []byte) (*keyedKey, error) {
	if it := k.keys[string(key)]; it != nil {
		it.asked = true
		return it, nil
	}
	if k.away.count == 0 || !k.away.filter.has(hashOfKey(key)) {
		return nil, nil
	}
	return k.fetch(key)
}

// fetch reads a key that may be away.
func (k *Keyed) fetch(key []byte) (*keyedKey, error) {
	if _, gone := k.away.buried[string(key)]; gone {
		return nil, nil
	}
	k.rest = append(append(k.rest[:0], keyedTable), key...)
	value, err := k.disk.Get(k.rest)
	if value == nil && err == nil {
		return nil, nil
	}
	var it *keyedKey
	if err == nil {
		it, err = k.decode(key, value)
	}
	if err != nil {
		return nil, recordError(k.rest, err)
	}
	it.listed = true
	k.away.count--
	k.restore(it)
	return it, nil
}

// restore puts a key that was read into memory, with its timers.
func (k *Keyed) restore(it *keyedKey) {
	k.enter(it)
	for _, t := range it.timers {
		k.heapOf(t).push(t)
	}
	if k.config.TTL > 0 {
		k.expire(it)
	}
	k.weigh(it)
}

// weigh notes what a key takes in memory, nothing where it is gone.
func (k *Keyed) weigh(it *keyedKey) {
	k.held -= it.weight
	if it.weight = 0; !it.gone {
		it.weight = it.bytes()
		k.held += it.weight
	}
}

// bury notes that a key is gone.
func (k *Keyed) bury(it *keyedKey) {
	if k.bounded() && it.stored {
		if k.away.buried == nil {
			k.away.buried = map[string]int64{}
		}
		k.away.buried[it.key] = unsaved
		if it.listed {
			k.away.dead++
		}
	}
}

// errEnough ends a scan.
var errEnough = errors.New("enough")

// bringDue brings keys back that are due, some at once, where there are any no later
// than t, the timer in memory that fires next, or nil. It says whether it looked, and
// how many came.
func (k *Keyed) bringDue(t *keyTimer) (looked bool, came int, err error) {
	until := k.reached
	if t != nil && t.kind != wallTimer {
		until = t.at
	}
	if !k.away.more || k.away.next > until {
		return false, 0, nil
	}
	var due []string
	from := kv.AppendTime([]byte{keyedIndex}, k.away.next)
	err = k.disk.Scan(from, kv.PrefixEnd([]byte{keyedIndex}), func(key, value []byte) error {
		at, name, err := k.decodeIndex(key, value)
		if err != nil {
			return recordError(key, err)
		}
		if k.away.next = at; at > k.reached || len(due) == k.portion(indexChunk) {
			return errEnough
		}
		if it := k.keys[string(name)]; it != nil {
			k.moveIndex(it)
		} else if _, gone := k.away.buried[string(name)]; !gone {
			due = append(due, string(name))
		}
		return nil
	})
	if k.away.more = errors.Is(err, errEnough); k.away.more {
		err = nil
	}
	for i := 0; i < len(due) && err == nil; i++ {
		err = k.bringBack([]byte(due[i]))
	}
	return true, len(due), err
}

// bringBack brings back a key that the index names.
func (k *Keyed) bringBack(key []byte) error {
	it, err := k.fetch(key)
	if err != nil {
		return err
	}
	if it == nil {
		return fmt.Errorf("a place in the index for key %.80q, which is not there: %w", key, kv.ErrCorrupt)
	}
	k.moveIndex(it)
	return nil
}

// moveIndex sees to it that a key whose place in the index is past gets another one.
func (k *Keyed) moveIndex(it *keyedKey) {
	if k.first(it) > k.reached && it.indexed <= k.reached {
		k.touch(it)
	}
}

// first is when the first timer of a key fires in event time, or when the key is
// dropped; watermark.Unset where neither happens.
func (k *Keyed) first(it *keyedKey) watermark.Time {
	first, any := watermark.EndOfTime, false
	for _, t := range it.timers {
		if t.kind == eventTimer {
			first, any = min(first, t.at), true
		}
	}
	if it.expiry != nil {
		first, any = min(first, it.expiry.at), true
	}
	if !any {
		return watermark.Unset
	}
	return first
}

// place gives the place in the index that a key is to have, which may be too early,
// but not past.
func (k *Keyed) place(it *keyedKey) watermark.Time {
	first := k.first(it)
	if first != watermark.Unset && it.indexed != watermark.Unset && it.indexed <= first && (!k.bounded() || it.indexed > k.reached) {
		return it.indexed
	}
	return first
}

// Committed implements Bounded.
func (k *Keyed) Committed() {
	k.committed()
	a := &k.away
	for len(a.graves) > 0 && a.graves[0].save < k.durable {
		if g := a.graves[0]; a.buried[g.key] == g.save {
			delete(a.buried, g.key)
		}
		a.graves = a.graves[1:]
	}
	if len(a.ring) > 2*len(k.keys)+leastRing {
		a.ring = slices.DeleteFunc(a.ring, func(it *keyedKey) bool { return it.gone })
	}
	k.shed()
}

// portion is n, or less where memory holds fewer keys.
func (k *Keyed) portion(n int) int { return int(max(min(int64(n), k.bound/entryBytes), 1)) }

// renew makes a new filter where many keys of the old one are gone, a part with each
// step.
func (k *Keyed) renew() error {
	a := &k.away
	if a.rebuilt == nil {
		if a.dead < k.portion(leastDead) || a.dead < a.listed/2 {
			return nil
		}
		a.rebuilt, a.scanned, a.taken = &filter{}, []byte{keyedTable}, 0
		a.rebuilt.reserve(a.listed - a.dead)
	}
	n := 0
	err := k.disk.Scan(a.scanned, kv.PrefixEnd([]byte{keyedTable}), func(key, _ []byte) error {
		if n == k.portion(scanChunk) {
			a.scanned = append(a.scanned[:0], key...)
			return errEnough
		}
		n++
		a.rebuilt.add(hashOfKey(key[1:]))
		a.taken++
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	if err == nil {
		k.held += a.rebuilt.bytes() - a.filter.bytes()
		a.filter, a.listed, a.dead, a.rebuilt = *a.rebuilt, a.taken, 0, nil
	}
	return err
}

// shed lets keys leave memory where it is full: those that nobody has asked for since
// they were looked at (the clock algorithm).
func (k *Keyed) shed() {
	if !k.full() {
		return
	}
	a, excess := &k.away, k.excess()
	for looks := 2 * len(a.ring); looks > 0 && excess > 0 && len(a.ring) > 0; looks-- {
		if a.hand >= len(a.ring) {
			a.hand = 0
		}
		it := a.ring[a.hand]
		switch {
		case it.gone:
		case it.asked:
			it.asked = false
			a.hand++
			continue
		case !k.mayLeave(it):
			a.hand++
			continue
		default:
			excess -= it.weight
			k.leave(it)
		}
		last := len(a.ring) - 1
		a.ring[a.hand], a.ring[last] = a.ring[last], nil
		a.ring = a.ring[:last]
	}
	k.stuck = excess > 0
}

// mayLeave says that a key is on disk, and that no timer wants it soon.
func (k *Keyed) mayLeave(it *keyedKey) bool {
	if it.dirty || it.saved >= k.durable || it.indexed != watermark.Unset && it.indexed <= k.reached {
		return false
	}
	for _, t := range it.timers {
		if t.kind == wallTimer {
			return false
		}
	}
	return true
}

// leave lets a key leave memory.
func (k *Keyed) leave(it *keyedKey) {
	for _, t := range it.timers {
		k.event.remove(t)
	}
	if it.expiry != nil {
		k.event.remove(it.expiry)
	}
	delete(k.keys, it.key)
	it.gone = true
	k.weigh(it)
	a := &k.away
	a.count++
	hash := hashOfKey([]byte(it.key))
	k.held -= a.filter.bytes()
	if !it.listed {
		if a.filter.empty() {
			a.filter.reserve(len(k.keys))
		}
		a.filter.add(hash)
		a.listed++
	}
	if a.rebuilt != nil {
		a.rebuilt.add(hash)
		a.taken++
	}
	k.held += a.filter.bytes()
	if it.indexed != watermark.Unset {
		if !a.more {
			a.more, a.next = true, it.indexed
		}
		a.next = min(a.next, it.indexed)
	}
}

// drop forgets all keys that are away.
func (a *keyedAway) drop(k *Keyed) {
	if k.bounded() {
		*a = keyedAway{buried: a.buried, graves: a.graves, cleared: true}
	}
}
