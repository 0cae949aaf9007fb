package host

import (
	"fmt"
	"strings"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// restore reads the state of an earlier run and checks that it belongs to this
// configuration.
func (o *owner) restore() error {
	store := o.config.Store
	if store == nil {
		return nil
	}
	mono := o.config.Clock.Mono()
	if err := o.restoreMode(store); err != nil {
		return err
	}
	unused, err := o.chain.Load(kv.SubReader(store, chainPrefix))
	if err != nil {
		return err
	}
	if len(unused) > 0 {
		o.config.Log.Warnf("%s: the state file holds state of %s, which the configuration does not have any more; it is kept and not used: rename the operator back to use it", o.config.Name, strings.Join(unused, ", "))
	}
	if err := o.positions.load(kv.SubReader(store, positionPrefix), mono); err != nil {
		return err
	}
	if err := o.flushed.load(kv.SubReader(store, flushedPrefix)); err != nil {
		return err
	}
	if o.replies != nil {
		err = o.replies.load(kv.SubReader(store, repliesPrefix), mono)
	} else {
		err = o.outbox.load(kv.SubReader(store, outboxPrefix))
	}
	if err == nil {
		err = o.restoreTarget(store)
	}
	if err == nil && o.config.Again != nil {
		err = o.doubts.load(store)
	}
	if err != nil {
		return err
	}
	var b kv.Batch
	o.chain.SaveDefinition(kv.SubWriter(&b, chainPrefix))
	put(&b, []byte(hostKey), kv.AppendBlob(kv.AppendBlob(nil, o.form()), o.config.PositionText))
	return store.Commit(&b)
}

// form names where the rows of the host go.
func (o *owner) form() string {
	if o.replies != nil {
		return "processor"
	}
	return "input"
}

// restoreMode refuses state whose positions or undelivered rows mean something
// else here.
func (o *owner) restoreMode(r kv.Reader) error {
	payload, err := getRecord(r, hostKey)
	if err != nil || payload == nil {
		return err
	}
	d := kv.NewDecoder(payload)
	form, position := d.String(), d.String()
	if err := d.Done(); err != nil {
		return fmt.Errorf("record %q: %w", hostKey, err)
	}
	const remedy = "put it back, give the host a new name to start with empty state, or delete the state file to start anew"
	if form != o.form() {
		return fmt.Errorf("%w: it was a windowed %s, is a windowed %s; %s", ErrConfiguration, form, o.form(), remedy)
	}
	if position != o.config.PositionText {
		return fmt.Errorf("%w: position was %q, is %q; %s", ErrConfiguration, position, o.config.PositionText, remedy)
	}
	return nil
}

// appendTarget encodes the position that the rows of the step derive from.
func appendTarget(p Position) []byte {
	b := kv.AppendBlob(kv.AppendBool(nil, p.Known), p.Partition)
	return kv.AppendVarint(kv.AppendVarint(b, p.Offset), int64(p.Part))
}

func (o *owner) restoreTarget(r kv.Reader) error {
	payload, err := getRecord(r, targetKey)
	if err != nil || payload == nil {
		return err
	}
	d := kv.NewDecoder(payload)
	o.target = Position{Known: d.Bool(), Partition: d.String(), Offset: d.Varint(), Part: int32(d.Varint())}
	if err := d.Done(); err != nil {
		return fmt.Errorf("record %q: %w", targetKey, err)
	}
	return nil
}

func getRecord(r kv.Reader, key string) ([]byte, error) {
	data, err := r.Get([]byte(key))
	if err != nil || data == nil {
		return nil, err
	}
	payload, err := open(data)
	if err != nil {
		return nil, fmt.Errorf("record %q: %w", key, err)
	}
	return payload, nil
}
