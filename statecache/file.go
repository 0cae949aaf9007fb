package statecache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// DefaultLockTimeout is how long Open waits for another process to let go.
const DefaultLockTimeout = 5 * time.Second

// lockRetry is how often a held lock is asked for again.
const lockRetry = 20 * time.Millisecond

// Options of Open. The zero value is good. The first Open of a file in a
// process decides for all.
type Options struct {
	// LockTimeout bounds the wait for a file in use; 0 means
	// DefaultLockTimeout, less than 0 means one attempt.
	LockTimeout time.Duration
	// GenerationBytes is the size of a Space's log at which it starts to fold
	// into the base; 0 means DefaultGenerationBytes. Memory and the time to
	// open grow with it, the bytes written per commit shrink.
	GenerationBytes int
	// NoSync leaves out the syncs: for tests that do not cut the power.
	NoSync bool
}

// File is one reference to an open state file. It may be used from any
// goroutine.
type File struct {
	*handle
	closed atomic.Bool
}

// handle is the one open file behind all references.
type handle struct {
	path string
	info os.FileInfo // identifies the file whatever its name
	opts Options
	file *os.File
	db   *bolt.DB

	// refs counts Files, Spaces and Caches; registry.mu protects it.
	refs int

	// mu protects leases and the queue of writes.
	mu     sync.Mutex
	leases map[string]bool
	queue  []*write

	// writing is held by the one that runs the queue's transaction.
	writing sync.Mutex
	// broken is the damage met by a write; nothing is written after it. stuck
	// says that bbolt could not even roll back: its locks are lost.
	broken atomic.Pointer[DamageError]
	stuck  atomic.Bool
	// fail is set by tests only, while nothing is written.
	fail failure
}

// registry holds the open files of the process: bbolt's lock is per open file,
// so a second open in the same process would wait for the first for ever.
var registry struct {
	mu   sync.Mutex // protects all below, and is held while a file opens
	open []*handle
}

// Open opens or creates the state file at path, with its directories. It is
// for constructors: it may wait LockTimeout. The error wraps ErrInUse,
// ErrForeign, ErrNewer or ErrDamaged, or is of the file system; it names the
// path and the remedy, and the file is left as it was.
func Open(path string, opts Options) (*File, error) {
	if path == "" {
		return nil, errors.New("path of the state file: it is empty. Name a file, such as ./state/pipeline.db")
	}
	registry.mu.Lock()
	defer registry.mu.Unlock()
	if info, err := os.Stat(path); err == nil {
		for _, h := range registry.open {
			if os.SameFile(h.info, info) {
				h.refs++
				return &File{handle: h}, nil
			}
		}
	}
	h, err := openHandle(path, opts)
	if err != nil {
		return nil, err
	}
	registry.open = append(registry.open, h)
	return &File{handle: h}, nil
}

func openHandle(path string, opts Options) (*handle, error) {
	if opts.LockTimeout == 0 {
		opts.LockTimeout = DefaultLockTimeout
	}
	if opts.GenerationBytes <= 0 {
		opts.GenerationBytes = DefaultGenerationBytes
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("directory of the state file %q: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state file: %w", err)
	}
	h := &handle{path: path, opts: opts, file: f, refs: 1, leases: map[string]bool{}}
	if h.info, err = f.Stat(); err == nil {
		err = h.start()
	}
	if err != nil {
		h.shut()
		return nil, err
	}
	return h, nil
}

// start locks and checks the file and brings bbolt up on it.
func (h *handle) start() error {
	if !h.info.Mode().IsRegular() {
		return fmt.Errorf("state file %q: it is a %s, a regular file is needed", h.path, h.info.Mode().Type())
	}
	ok, err := lock(h.file, h.opts.LockTimeout)
	if err != nil {
		return fmt.Errorf("lock of the state file %q: %w", h.path, err)
	}
	if !ok {
		return h.inUse()
	}
	if err := precheck(h.file, h.path); err != nil {
		return err
	}
	err = guard(h.path, place{what: "opening it"}, func() (err error) {
		h.db, err = bolt.Open(h.path, 0o600, &bolt.Options{
			Timeout:      max(h.opts.LockTimeout, lockRetry),
			FreelistType: bolt.FreelistArrayType, // see doc.go
			NoSync:       h.opts.NoSync,
			OpenFile:     func(string, int, os.FileMode) (*os.File, error) { return h.file, nil },
		})
		return err
	})
	if errors.Is(err, berrors.ErrTimeout) {
		return h.inUse()
	}
	if err != nil {
		return fmt.Errorf("state file %q: %w", h.path, err)
	}
	return h.checkFormat()
}

func (h *handle) inUse() error {
	return fmt.Errorf("%w: %q is held by another process (waited %v). Stop that process, or give this pipeline a file of its own", ErrInUse, h.path, h.opts.LockTimeout)
}

// shut lets go of the file. Closing twice is harmless; bbolt is left alone
// where its locks are lost, for its Close would wait for them.
func (h *handle) shut() error {
	var err error
	if h.db != nil && !h.stuck.Load() {
		err = h.db.Close()
	}
	if cerr := h.file.Close(); err == nil && !errors.Is(cerr, os.ErrClosed) {
		err = cerr
	}
	return err
}

// retain adds a reference for a Space or a Cache, unless the last is gone.
func (h *handle) retain() error {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	if h.refs == 0 {
		return ErrClosed
	}
	h.refs++
	return nil
}

// release drops a reference; the last one closes the file.
func (h *handle) release() error {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	if h.refs--; h.refs > 0 {
		return nil
	}
	registry.open = slices.DeleteFunc(registry.open, func(o *handle) bool { return o == h })
	return h.shut()
}

// Close drops this reference. The file closes with its last File, Space and
// Cache. A second Close does nothing.
func (f *File) Close() error {
	if f.closed.Swap(true) {
		return nil
	}
	return f.release()
}

// Path is the path under which the file was opened first.
func (f *File) Path() string { return f.path }

// Size is the size of the file in bytes. It grows and is used again inside,
// but never shrinks.
func (f *File) Size() (int64, error) {
	if f.closed.Load() {
		return 0, ErrClosed
	}
	info, err := f.file.Stat()
	if err != nil {
		return 0, fmt.Errorf("state file %q: %w", f.path, err)
	}
	return info.Size(), nil
}
