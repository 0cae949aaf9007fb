package windowing

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
)

// ErrDefinition says that the stored state was written by another definition.
var ErrDefinition = errors.New("state was written by another definition")

// Keys of a chain in its store. Each stage has its own prefix.
const (
	stepKey          = "step"
	definitionPrefix = "def/"
	frontierPrefix   = "wm/"
	operatorPrefix   = "op/"
	chainVersion     = 1
)

// Save writes what changed since the last Save. The state must be Whole.
func (c *Chain) Save(w kv.Writer) {
	if c.flush {
		panic("windowing: a flushed chain is spent")
	}
	if c.half {
		panic("windowing: the step is half done")
	}
	w.Put([]byte(stepKey), kv.AppendRecord(nil, chainVersion, c.appendStep(nil)))
	for i := range c.stages {
		st := &c.stages[i]
		if f := c.frontier[i]; f != nil {
			c.saveFrontier(f, kv.SubWriter(w, frontierPrefix+st.Name+"/"))
		}
		if st.Operator != nil {
			st.Operator.Save(kv.SubWriter(w, operatorPrefix+st.Name+"/"))
		}
	}
}

// saveFrontier writes what changed in a frontier, one Save late where the chain is
// behind.
func (c *Chain) saveFrontier(f *watermark.Frontier, w kv.Writer) {
	if !c.config.Behind {
		f.WriteChanges(func(key, value []byte) { w.Put(key, kv.AppendRecord(nil, chainVersion, value)) })
		return
	}
	var next []frontierRecord
	f.WriteChanges(func(key, value []byte) {
		next = append(next, frontierRecord{key, kv.AppendRecord(nil, chainVersion, value)})
	})
	late := c.behind
	if c.settled {
		late, next, c.settled = append(late, next...), nil, false
	}
	for _, r := range late {
		w.Put(r.key, r.value)
	}
	c.behind = next
}

// frontierRecord is a record that the next Save writes.
type frontierRecord struct{ key, value []byte }

// Settle says that whoever comes behind the chain is through with everything that
// it gave: the next Save leaves nothing behind. It says whether that Save has
// anything to write for it.
func (c *Chain) Settle() bool {
	c.settled = c.config.Behind && len(c.behind) > 0
	return c.settled
}

// SaveDefinition writes the definitions of the stages, once after Load.
func (c *Chain) SaveDefinition(w kv.Writer) {
	for i := range c.stages {
		if st := &c.stages[i]; st.Name != "" {
			w.Put([]byte(definitionPrefix+st.Name), kv.AppendRecord(nil, chainVersion, appendDefinition(nil, st)))
		}
	}
}

// appendStep encodes the arrival counter and the step under way.
func (c *Chain) appendStep(b []byte) []byte {
	b = kv.AppendVarint(b, c.arrivals)
	b = kv.AppendBool(b, c.open)
	if !c.open {
		return b
	}
	b = kv.AppendBlob(b, c.stages[c.front].Name)
	b = kv.AppendVarint(b, int64(c.close))
	b = kv.AppendVarint(b, int64(c.heard))
	b = kv.AppendUvarint(b, uint64(len(c.lates)))
	for _, t := range c.lates {
		b = kv.AppendVarint(b, int64(t))
	}
	return c.appendUnfinished(b)
}

// Load reads the state into a fresh chain and checks that its definitions are
// those that wrote it. Unused names the stages in the store that the chain does
// not have; their state stays where it is. Where Config.Memory bounds the chain the
// reader is read until the chain is gone.
func (c *Chain) Load(r kv.Reader) (unused []string, err error) {
	stored := map[string]string{}
	end := kv.PrefixEnd([]byte(definitionPrefix))
	err = r.Scan([]byte(definitionPrefix), end, func(key, value []byte) error {
		name := strings.TrimPrefix(string(key), definitionPrefix)
		payload, err := record(value, "definition of "+name)
		stored[name] = string(payload)
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range c.stages {
		st := &c.stages[i]
		if old, ok := stored[st.Name]; ok && st.Name != "" {
			if err := compareDefinition(st, old); err != nil {
				return nil, err
			}
			delete(stored, st.Name)
		}
	}
	for name := range stored {
		unused = append(unused, name)
	}
	return unused, c.loadStages(r)
}

// bound tells the operators that can leave state on disk how much they may hold.
func (c *Chain) bound(r kv.Reader) {
	if c.config.Memory <= 0 {
		return
	}
	var bounded []Bounded
	var disks []kv.Reader
	for i := range c.stages {
		st := &c.stages[i]
		if op, is := st.Operator.(Bounded); is {
			bounded = append(bounded, op)
			disks = append(disks, kv.SubReader(r, operatorPrefix+st.Name+"/"))
		}
	}
	for i, op := range bounded {
		op.Bound(c.config.Memory/int64(len(bounded)), disks[i])
	}
}

// Committed says that everything that was saved is on disk. It may then leave memory
// where Config.Memory bounds it.
func (c *Chain) Committed() {
	if c.config.Memory <= 0 {
		return
	}
	for i := range c.stages {
		if op, is := c.stages[i].Operator.(Bounded); is {
			op.Committed()
		}
	}
}

func (c *Chain) loadStages(r kv.Reader) error {
	c.bound(r)
	for i := range c.stages {
		st := &c.stages[i]
		if f := c.frontier[i]; f != nil {
			if err := loadFrontier(f, kv.SubReader(r, frontierPrefix+st.Name+"/")); err != nil {
				return fmt.Errorf("state of %s %q: %w", st.Kind, st.Name, err)
			}
		}
		if st.Operator != nil {
			if err := st.Operator.Load(kv.SubReader(r, operatorPrefix+st.Name+"/")); err != nil {
				return fmt.Errorf("state of %s %q: %w", st.Kind, st.Name, err)
			}
		}
	}
	payload, err := getRecord(r, stepKey)
	if err != nil || payload == nil {
		return err
	}
	return c.loadStep(payload)
}

// loadFrontier reads the records of a frontier.
func loadFrontier(f *watermark.Frontier, r kv.Reader) error {
	return r.Scan(nil, nil, func(key, value []byte) error {
		payload, err := record(value, fmt.Sprintf("%q", key))
		if err != nil {
			return err
		}
		return f.RestoreRecord(slices.Clone(key), slices.Clone(payload))
	})
}

// loadStep restores an open step, so that Run goes on with it. A step whose
// stages are gone or moved is dropped: what is due comes out with the next close.
func (c *Chain) loadStep(payload []byte) error {
	d := kv.NewDecoder(payload)
	c.arrivals = d.Varint()
	open := d.Bool()
	if d.Err() != nil || !open {
		return d.Done()
	}
	name := d.String()
	done, heard := watermark.Time(d.Varint()), watermark.Time(d.Varint())
	lates := make([]watermark.Time, d.Count(1))
	for i := range lates {
		lates[i] = watermark.Time(d.Varint())
	}
	var partitions []observed
	for d.Err() == nil && d.Len() > 0 {
		partitions = append(partitions, readObserved(d))
	}
	if err := d.Done(); err != nil {
		return fmt.Errorf("record %q: %w", stepKey, err)
	}
	front := -1
	for i := range c.stages {
		if c.stages[i].Name == name {
			front = i
		}
	}
	if front < 0 || len(lates) != len(c.lates) {
		return nil
	}
	c.open, c.front, c.at, c.close, c.lates = true, front, front, done, lates
	c.clock, c.heard = c.config.Start, heard
	for _, o := range partitions {
		if err := c.observeAgain(o); err != nil {
			return err
		}
	}
	return nil
}

// record opens a framed record and checks its version.
func record(data []byte, what string) ([]byte, error) {
	version, payload, err := kv.Record(data)
	if err == nil && version != chainVersion {
		err = fmt.Errorf("version %d, this build reads %d", version, chainVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("record %s: %w", what, err)
	}
	return payload, nil
}

func getRecord(r kv.Reader, key string) ([]byte, error) {
	data, err := r.Get([]byte(key))
	if err != nil || data == nil {
		return nil, err
	}
	return record(data, key)
}

// appendDefinition encodes kind and settings.
func appendDefinition(b []byte, st *Stage) []byte {
	b = kv.AppendBlob(b, st.Kind)
	for _, s := range st.Definition {
		b = kv.AppendBlob(kv.AppendBlob(b, s.Field), s.Value)
	}
	return b
}

// compareDefinition names what changed since the state was written.
func compareDefinition(st *Stage, stored string) error {
	d := kv.NewDecoder([]byte(stored))
	kind := d.String()
	old := map[string]string{}
	for d.Err() == nil && d.Len() > 0 {
		field := d.String()
		old[field] = d.String()
	}
	if err := d.Done(); err != nil {
		return fmt.Errorf("definition of %s %q: %w", st.Kind, st.Name, err)
	}
	var changed []string
	if kind != st.Kind {
		changed = append(changed, fmt.Sprintf("operator was %s, is %s", kind, st.Kind))
	}
	for _, s := range st.Definition {
		if was := old[s.Field]; was != s.Value {
			changed = append(changed, fmt.Sprintf("%s was %q, is %q", s.Field, was, s.Value))
		}
		delete(old, s.Field)
	}
	for field, was := range old {
		changed = append(changed, fmt.Sprintf("%s was %q, is gone", field, was))
	}
	if len(changed) == 0 {
		return nil
	}
	return fmt.Errorf("%s %q: %w: %s; put it back, give the operator a new name (such as `name: %s_2`) to start with empty state, or delete the state file to start anew",
		st.Kind, st.Name, ErrDefinition, strings.Join(changed, "; "), st.Name)
}

// Deadline is the earliest Mono at which a tick could move a watermark.
func (c *Chain) Deadline() (at time.Duration, ok bool) {
	for _, f := range c.frontier {
		if f == nil {
			continue
		}
		if d, has := f.Deadline(); has && (!ok || d < at) {
			at, ok = d, true
		}
	}
	return at, ok
}

// Alarmed is an Operator with work that the wall clock brings. The host asks after
// every step, and starts a tick when the time has come.
type Alarmed interface {
	// Alarm is the time of the wall clock from which on Advance has something to
	// do; ok is false where nothing waits.
	Alarm() (wall watermark.Time, ok bool)
}

// Alarm is the earliest time of the wall clock that an operator waits for.
func (c *Chain) Alarm() (wall watermark.Time, ok bool) {
	for i := range c.stages {
		if op, is := c.stages[i].Operator.(Alarmed); is {
			if at, has := op.Alarm(); has && (!ok || at < wall) {
				wall, ok = at, true
			}
		}
	}
	return wall, ok
}

// EndInput tells the watermarks of a natural end: start-up waits are over.
func (c *Chain) EndInput() {
	for _, f := range c.frontier {
		if f != nil {
			f.EndInput()
		}
	}
}

// Stages gives the stages, for reading.
func (c *Chain) Stages() []Stage { return c.stages }

// Watermark gives W of the watermark stage i.
func (c *Chain) Watermark(i int) watermark.Time { return c.frontier[i].Watermark() }

// Holder gives the partition that holds back the watermark stage i.
func (c *Chain) Holder(i int, now watermark.Clock) (watermark.Holder, bool) {
	return c.frontier[i].Holder(now)
}

// Away tells the watermarks that a partition is read by somebody else from now on: it
// does not hold W back until it speaks here again, or until Back. It reports whether a
// watermark knows a partition of that name.
func (c *Chain) Away(partition string) (known bool) {
	for _, f := range c.frontier {
		known = f != nil && f.Away(partition) || known
	}
	return known
}

// Back tells the watermarks that a partition that was away will speak here again.
func (c *Chain) Back(partition string) {
	for _, f := range c.frontier {
		if f != nil {
			f.Back(partition)
		}
	}
}

// TakeTally gives what stage i counted since the last call.
func (c *Chain) TakeTally(i int) Tally {
	t := c.tally[i]
	c.tally[i] = Tally{}
	return t
}
