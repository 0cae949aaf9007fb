package windowing

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// randomCode is code of a keyed state that does something else for every row and
// every timer, the same for the same. A state is a text that grows.
type randomCode struct{ seed uint64 }

var errCode = errors.New("the code fails")

// random is the same for the same texts.
func (c randomCode) random(parts ...any) *rand.Rand {
	h := c.seed
	for _, b := range []byte(fmt.Sprint(parts...)) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return rand.New(rand.NewPCG(c.seed, h))
}

func (c randomCode) Event(call KeyedCall, row *Row) (KeyedEffect, error) {
	return c.effect(c.random("row", row.Message), call, row.Time, watermark.Time(row.Arrival))
}

func (c randomCode) Timer(call KeyedCall, timer KeyedTimer) (KeyedEffect, error) {
	r := c.random("timer", timer, call.State)
	return c.effect(r, call, timer.At-10, timer.At-10)
}

// effect sets timers around the times from: some in the past, some of the same name.
func (c randomCode) effect(r *rand.Rand, call KeyedCall, event, wall watermark.Time) (e KeyedEffect, err error) {
	if r.IntN(12) == 0 {
		return e, errCode
	}
	switch r.IntN(6) {
	case 0:
		e.Set = true
	case 1, 2:
		e.Set, e.State = true, fmt.Sprintf("%.20s%d", call.State, r.IntN(10))
	}
	for range r.IntN(3) {
		e.Rows = append(e.Rows, fmt.Sprintf("row of %q", call.State))
	}
	for range max(r.IntN(5)-2, 0) {
		t := KeyedTimer{Name: fmt.Sprint(r.IntN(3)), At: event + watermark.Time(r.IntN(60)-5)}
		if r.IntN(4) == 0 {
			t.Processing, t.At = true, wall+watermark.Time(r.IntN(60)-5)
		}
		e.Timers = append(e.Timers, t)
	}
	return e, nil
}

// keyedOracle is a keyed state that looks at all timers of all keys to find the one
// that fires next.
type keyedOracle struct {
	code   randomCode
	ttl    watermark.Time
	keys   map[string]*oracleKey
	number int64
	in     Instant
	text   []string
}

type oracleKey struct {
	state  string
	last   watermark.Time
	timers []oracleTimer
}

type oracleTimer struct {
	KeyedTimer
	key    string
	number int64 // math.MaxInt64: the key goes
}

func (o *keyedOracle) run(steps []operatorStep) (output [][]string) {
	steps = append(slices.Clone(steps), operatorStep{in: Instant{Close: watermark.EndOfTime}})
	for i, s := range steps {
		o.in, o.text = s.in, nil
		if i == len(steps)-1 && i > 0 {
			o.in.Late = steps[i-1].in.Close
		} else if i == 0 && len(steps) == 1 {
			o.in.Late = watermark.Unset
		}
		for _, row := range s.rows {
			o.event(row)
		}
		for o.fire() {
		}
		output = append(output, o.text)
	}
	return output
}

func (o *keyedOracle) say(format string, args ...any) {
	o.text = append(o.text, fmt.Sprintf(format, args...))
}

func (o *keyedOracle) event(row Row) {
	key := string(row.Key)
	k := o.keys[key]
	if k == nil {
		k = &oracleKey{last: row.Time}
	}
	effect, err := o.code.Event(KeyedCall{Key: row.Key, State: k.state, Watermark: o.in.Late}, &row)
	switch {
	case row.Time < o.in.Late:
		o.say("late %v by %d", row.Message, o.in.Late-row.Time)
		return
	case err != nil:
		o.say("failed %v", row.Message)
		return
	}
	k.last = max(k.last, row.Time)
	o.keys[key] = k
	o.number++
	number := o.number
	o.change(k, effect)
	for _, t := range effect.Timers {
		o.set(k, key, t)
	}
	for i := range effect.Rows {
		o.row(row.Time, key, number, i, effect.Rows[i])
	}
	o.settle(key)
}

func (o *keyedOracle) row(at watermark.Time, key string, number int64, i int, m Message) {
	o.say("%v at %d of %s number %d, %d", m, at, keyText(key), number, i)
}

func (o *keyedOracle) change(k *oracleKey, e KeyedEffect) {
	if e.Set {
		k.state = e.State
		if k.state == "" {
			k.timers = nil
		}
	}
}

func (o *keyedOracle) set(k *oracleKey, key string, t KeyedTimer) {
	o.number++
	k.timers = slices.DeleteFunc(k.timers, func(old oracleTimer) bool { return old.Name == t.Name })
	k.timers = append(k.timers, oracleTimer{t, key, o.number})
}

func (o *keyedOracle) settle(key string) {
	if k := o.keys[key]; k.state == "" && len(k.timers) == 0 {
		delete(o.keys, key)
	}
}

// next is the timer that fires next.
func (o *keyedOracle) next() (next oracleTimer, ok bool) {
	var due []oracleTimer
	end := o.in.Close == watermark.EndOfTime
	for key, k := range o.keys {
		for _, t := range k.timers {
			if now := map[bool]watermark.Time{false: o.in.Close, true: o.in.Wall}[t.Processing]; end || t.At <= now {
				due = append(due, t)
			}
		}
		if o.ttl > 0 && k.last+o.ttl <= o.in.Close {
			due = append(due, oracleTimer{KeyedTimer{At: k.last + o.ttl}, key, math.MaxInt64})
		}
	}
	slices.SortFunc(due, func(a, b oracleTimer) int {
		switch {
		case a.Processing != b.Processing:
			return map[bool]int{true: 1, false: -1}[a.Processing]
		case a.At != b.At:
			return cmp.Compare(a.At, b.At)
		case a.key != b.key:
			return cmp.Compare(a.key, b.key)
		}
		return cmp.Compare(a.number, b.number)
	})
	if len(due) == 0 {
		return next, false
	}
	return due[0], true
}

func (o *keyedOracle) fire() bool {
	t, ok := o.next()
	if !ok {
		return false
	}
	if t.number == math.MaxInt64 {
		delete(o.keys, t.key)
		return true
	}
	k := o.keys[t.key]
	k.timers = slices.DeleteFunc(k.timers, func(old oracleTimer) bool { return old.Name == t.Name })
	at, end := max(t.At, o.in.Late), o.in.Close == watermark.EndOfTime
	effect, err := o.code.Timer(KeyedCall{Key: []byte(t.key), State: k.state, Watermark: o.in.Close}, t.KeyedTimer)
	if err != nil {
		o.say("%v failed at %d of %s number %d, 0", t.KeyedTimer, at, keyText(t.key), t.number)
		o.settle(t.key)
		return true
	}
	o.change(k, effect)
	rows := len(effect.Rows)
	for i := range effect.Rows {
		o.row(at, t.key, t.number, i, effect.Rows[i])
	}
	for _, set := range effect.Timers {
		now := t.At
		if set.Processing != t.Processing {
			now = map[bool]watermark.Time{false: o.in.Close, true: o.in.Wall}[set.Processing]
		}
		other := set.Processing != t.Processing
		switch {
		case set.At <= now && !(end && other):
			o.say("%v refused at %d of %s number %d, %d", set, at, keyText(t.key), t.number, rows)
			rows++
		case !end:
			o.set(k, t.key, set)
		}
	}
	o.settle(t.key)
	return true
}

// keyedLines describes what an output holds, in the words of the oracle.
func keyedLines(out *Output) (text []string) {
	for _, it := range out.items {
		res := it.result
		switch {
		case res == nil && it.row.Flag == Late:
			text = append(text, fmt.Sprintf("late %v by %d", it.row.Message, it.row.Mark.LateBy))
			continue
		case res == nil:
			text = append(text, fmt.Sprintf("failed %v", it.row.Message))
			continue
		}
		parts := strings.Split(strings.Trim(res.RowKey, "[]"), ",")
		what := map[bool]string{errors.Is(res.Err, ErrTimer): " refused", errors.Is(res.Err, ErrOnTimer): " failed"}[true]
		text = append(text, fmt.Sprintf("%v%s at %d of %s number %s, %s", res.Message, what, res.Time, keyText(string(res.Key)), parts[len(parts)-2], parts[len(parts)-1]))
	}
	return text
}

// TestKeyedAgainstOracle: timers of both clocks, replaced, deleted, refused and set
// by each other, and keys that fall silent: same rows in the same order, with the
// same numbers, any restarts and parts.
func TestKeyedAgainstOracle(t *testing.T) {
	seed := newSeed(t)
	fired := 0
	for i := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, i))
		keys := 1 + r.IntN(4+int(i%3)*10)
		steps := randomSteps(r, func(row *Row) { row.Key = randomKey(r, keys) })
		wall := watermark.Time(0)
		for j := range steps {
			wall += watermark.Time(r.IntN(15))
			steps[j].in.Wall = wall
		}
		cfg := KeyedConfig{Name: "k", TTL: time.Duration(r.IntN(3) * 15), PassLate: true, Evaluator: randomCode{seed + i}}
		oracle := keyedOracle{code: randomCode{seed + i}, ttl: watermark.Time(cfg.TTL), keys: map[string]*oracleKey{}}
		c := operatorChaos{t: t, r: r, bound: int64(r.IntN(2) * (1 + r.IntN(2000))), fresh: func() Operator { return NewKeyed(cfg) }, lines: keyedLines, exact: true}
		want, got := oracle.run(steps), c.run(steps)
		for j := range want {
			require.Equal(t, strings.Join(want[j], "\n"), strings.Join(got[j], "\n"), "seed %d stream %d step %d", seed, i, j)
			fired += strings.Count(strings.Join(want[j], "\n"), "refused")
		}
	}
	require.Positive(t, fired)
}
