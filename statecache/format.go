package statecache

import (
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// formatVersion is the version of the layout in doc.go. A change that an older
// program cannot read takes the next number and brings a migration.
const formatVersion = 1

// Names in the file. Never change one.
var (
	bucketFormat = []byte("connect-windowed")
	bucketSpaces = []byte("windowed")
	bucketCaches = []byte("cache")
	keyFormat    = []byte("format")
)

// checkFormat accepts our files up to our version, marks an empty file as
// ours, and refuses the rest.
func (h *handle) checkFormat() error {
	isNew := false
	err := h.view(place{what: "reading its format record"}, func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketFormat)
		if b == nil {
			first, _ := tx.Cursor().First()
			if isNew = first == nil; isNew {
				return nil
			}
			return fmt.Errorf("%w: %q is a bbolt file of another program (it has a bucket %q and no format record). Give another path", ErrForeign, h.path, first)
		}
		version, payload, err := kv.Record(b.Get(keyFormat))
		switch {
		case err != nil:
			return err
		case version > formatVersion:
			return fmt.Errorf("%w: %q has format %d, this program reads up to %d. Use the newer program, or another file", ErrNewer, h.path, version, formatVersion)
		case version < 1 || len(payload) > 0:
			return fmt.Errorf("format %d with %d bytes: %w", version, len(payload), kv.ErrCorrupt)
		}
		return nil
	})
	if err != nil || !isNew {
		return err
	}
	return h.update(place{what: "writing its format record"}, func(tx *bolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists(bucketFormat)
		if err != nil {
			return err
		}
		return b.Put(keyFormat, kv.AppendRecord(nil, formatVersion, nil))
	})
}
