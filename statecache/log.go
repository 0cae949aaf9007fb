package statecache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// Names in the bucket of a Space. Never change one.
var (
	bucketBase = []byte("base")
	keyState   = []byte("state")
	logPrefix  = []byte("log")
)

const (
	stateVersion = 1
	logVersion   = 1
	recordFrame  = 5 // what kv.AppendRecord adds
)

// generation is a part of the log: records of consecutive sequence numbers in
// a bucket of their own, and the table of what they say.
type generation struct {
	id    uint64 // names the bucket
	first uint64 // sequence number of its first record
	bytes int    // of its records
	index index
	table table
	rest  rest // of it, while it is folded
}

// enter puts aside a record that the log has, for settle.
func (g *generation) enter(record []byte) error {
	version, batch, err := kv.Record(record)
	if err == nil && version != logVersion {
		err = fmt.Errorf("log record of version %d, %d expected: %w", version, logVersion, kv.ErrCorrupt)
	}
	if err != nil {
		return err
	}
	g.bytes += len(record)
	g.table.apply(batch)
	return nil
}

// settle takes up what enter put aside.
func (g *generation) settle() error {
	g.index.mu.Lock()
	defer g.index.mu.Unlock()
	for _, batch := range g.table.aside {
		if err := g.index.apply(batch); err != nil {
			return err
		}
	}
	return nil
}

// take takes up the batch of a record that was just committed. A read that begins
// after one that has seen it sees it too.
func (g *generation) take(batch []byte) error {
	g.index.mu.Lock()
	defer g.index.mu.Unlock()
	err := g.index.apply(batch)
	g.table.apply(batch)
	return err
}

func (g *generation) bucket() []byte {
	return binary.BigEndian.AppendUint64(bytes.Clone(logPrefix), g.id)
}

// spaceState is where a Space stands. It is replaced as a whole, after the
// transaction that brings the file there.
type spaceState struct {
	active *generation
	frozen *generation // on its way into the base, or nil
	pos    string      // keys of frozen below it are in the base
	work   int         // items of frozen when its fold began, 0 before
	age    int         // bytes committed since frozen is
	next   uint64      // sequence number of the next record
}

// generations lists them newest first.
func (s *spaceState) generations() []*generation {
	if s.frozen == nil {
		return []*generation{s.active}
	}
	return []*generation{s.active, s.frozen}
}

// maxPos bounds the fold position on disk. A prefix of it is as right: to fold
// a key again changes nothing.
const maxPos = 512

func (s *spaceState) append(dst []byte) []byte {
	dst = kv.AppendUvarint(dst, s.active.id)
	dst = kv.AppendUvarint(dst, s.active.first)
	dst = kv.AppendUvarint(dst, s.next)
	dst = kv.AppendBool(dst, s.frozen != nil)
	if s.frozen != nil {
		dst = kv.AppendUvarint(dst, s.frozen.id)
		dst = kv.AppendUvarint(dst, s.frozen.first)
		dst = kv.AppendBlob(dst, s.pos[:min(len(s.pos), maxPos)])
	}
	return dst
}

// readState reads the state record of a Space's bucket; both may be missing,
// which is a Space without a commit.
func readState(b *bolt.Bucket) (spaceState, error) {
	s := spaceState{active: &generation{}}
	if b == nil {
		return s, nil
	}
	version, payload, err := kv.Record(b.Get(keyState))
	if err != nil {
		return s, fmt.Errorf("its state record: %w", err)
	}
	if version != stateVersion {
		return s, fmt.Errorf("%w: state record of version %d, this program reads %d. Use the newer program, or another name", ErrNewer, version, stateVersion)
	}
	return decodeState(payload)
}

// decodeState reads what append wrote.
func decodeState(payload []byte) (spaceState, error) {
	s := spaceState{active: &generation{}}
	d := kv.NewDecoder(payload)
	s.active.id, s.active.first, s.next = d.Uvarint(), d.Uvarint(), d.Uvarint()
	if d.Bool() {
		s.frozen = &generation{id: d.Uvarint(), first: d.Uvarint()}
		s.pos = d.String()
		if s.frozen.id >= s.active.id || s.frozen.first > s.active.first {
			d.Fail("generation %d is not older than %d", s.frozen.id, s.active.id)
		}
	}
	if s.active.first > s.next {
		d.Fail("generation %d begins at %d of %d", s.active.id, s.active.first, s.next)
	}
	return s, d.Done()
}

// load replays the log. It is indexed after the transaction: a writer that has to
// grow the file waits for every reader.
func (s *Space) load() error {
	where := place{"reading the log of state", s.name}
	err := s.view(where, func(tx *bolt.Tx) (err error) {
		b := s.bucket(tx)
		if s.state, err = readState(b); err != nil || b == nil {
			return err
		}
		st := &s.state
		if st.frozen != nil {
			if err := replay(b, st.frozen, st.active.first); err != nil {
				return err
			}
		}
		return replay(b, st.active, st.next)
	})
	if err != nil {
		return err
	}
	return guard(s.path, where, func() error {
		for _, g := range s.state.generations() {
			if err := g.settle(); err != nil {
				return err
			}
		}
		s.state.age = s.state.active.bytes
		return nil
	})
}

// replay enters the records of g up to the sequence number end.
func replay(b *bolt.Bucket, g *generation, end uint64) error {
	var pieces [][]byte
	want := g.first
	flush := func() error {
		if len(pieces) == 0 {
			return nil
		}
		err := g.enter(bytes.Join(pieces, nil))
		if err != nil {
			err = fmt.Errorf("log record %d: %w", want, err)
		}
		want++
		pieces = pieces[:0]
		return err
	}
	if log := b.Bucket(g.bucket()); log != nil {
		c := log.Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			seq, piece, err := readPieceKey(k)
			if err == nil && piece == 0 {
				err = flush()
			}
			if err != nil {
				return err
			}
			if seq != want || int(piece) != len(pieces) {
				return fmt.Errorf("log record %d, piece %d where record %d, piece %d is expected: %w", seq, piece, want, len(pieces), kv.ErrCorrupt)
			}
			pieces = append(pieces, v)
		}
	}
	if err := flush(); err != nil {
		return err
	}
	if want != end {
		return fmt.Errorf("the log ends before record %d, %d is expected: %w", want, end, kv.ErrCorrupt)
	}
	return nil
}

// pieceSize is the size of the pieces in which a record of so many bytes is stored.
// Three fill a page of the file: a larger value would make bbolt keep up to four in
// one run of pages and write all of them again with the next. Of a large record two
// fill such a run, of a length that is little against the record: fewer pages to find
// and to write one by one.
func pieceSize(pageSize, record int) int {
	if pages := min(record/pageSize/runShare, mostRun); pages > 1 {
		return (pages*pageSize-pageHeader)/2 - leafElement - pieceKey
	}
	return (pageSize-pageHeader-1)/3 - leafElement - pieceKey
}

const (
	runShare = 64 // part of a record in one run of pages
	mostRun  = 16 // pages
)

const (
	leafElement = 16 // what bbolt spends on an entry beside key and value
	pieceKey    = 8 + 4
)

func appendPieceKey(dst []byte, seq uint64, piece uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(dst, seq), piece)
}

func readPieceKey(k []byte) (seq uint64, piece uint32, err error) {
	if len(k) != pieceKey {
		return 0, 0, fmt.Errorf("a key of %d bytes in the log, %d expected: %w", len(k), pieceKey, kv.ErrCorrupt)
	}
	return binary.BigEndian.Uint64(k), binary.BigEndian.Uint32(k[8:]), nil
}

// write does one commit in tx and returns the state after it. It is a function
// of the state in memory, and may find the file one step ahead of it: a
// transaction whose last sync failed may be there all the same.
func (s *Space) write(tx *bolt.Tx, record []byte) (spaceState, error) {
	n := s.state
	spaces, err := tx.CreateBucketIfNotExists(bucketSpaces)
	if err != nil {
		return n, err
	}
	var disk spaceState
	if disk, err = readState(spaces.Bucket([]byte(s.name))); err != nil {
		return n, err
	}
	if disk.next != n.next && disk.next != n.next+1 {
		return n, fmt.Errorf("the file has %d commits of state %q, memory %d: %w", disk.next, s.name, n.next, kv.ErrCorrupt)
	}
	b, err := spaces.CreateBucketIfNotExists([]byte(s.name))
	if err != nil {
		return n, err
	}
	if disk.next > n.next {
		err = n.follow(b, &disk)
	}
	if err == nil && n.frozen != nil {
		err = s.foldSlice(b, &n, len(record))
	}
	if err == nil && n.due(len(record), s.generation) {
		err = n.freeze(b)
	}
	if err == nil {
		err = writeLog(b, n.active, n.next, record, pieceSize(s.db.Info().PageSize, len(record)))
	}
	if err != nil {
		return n, err
	}
	n.next++
	n.age += max(len(record), foldStep)
	return n, b.Put(keyState, kv.AppendRecord(nil, stateVersion, n.append(nil)))
}

// follow takes the steps that the file is ahead: a fold that ended, a generation
// that was frozen and perhaps folded.
func (s *spaceState) follow(b *bolt.Bucket, disk *spaceState) error {
	if s.frozen != nil && (disk.frozen == nil || disk.frozen.id != s.frozen.id) {
		s.thaw()
	}
	if s.frozen != nil || disk.active.id == s.active.id {
		return nil
	}
	if disk.frozen == nil { // a second step that was thought failed has folded it
		s.active = &generation{id: disk.active.id, first: s.next}
		return nil
	}
	return s.freeze(b)
}

// due says whether the active generation is full: with the record it would grow
// past the size of one, and it is no small part of one.
func (s *spaceState) due(record, generation int) bool {
	return s.frozen == nil && s.active.bytes > 0 &&
		s.active.bytes >= generation/2 && s.active.bytes+record > generation
}

// freeze begins a new generation. A record that a step which was thought failed left
// in the old one goes, for the next record will be in the new one.
func (s *spaceState) freeze(b *bolt.Bucket) error {
	s.frozen, s.pos, s.work, s.age = s.active, "", 0, 0
	s.active = &generation{id: s.frozen.id + 1, first: s.next}
	log := b.Bucket(s.frozen.bucket())
	if log == nil {
		return fmt.Errorf("generation %d has no log: %w", s.frozen.id, kv.ErrCorrupt)
	}
	return cutLog(log, s.frozen.first, s.next)
}

// thaw forgets the frozen generation, whose fold has ended.
func (s *spaceState) thaw() { s.frozen, s.pos, s.work, s.age = nil, "", 0, 0 }

// writeLog appends a record under seq, in place of what a step that was
// thought failed may have left there.
func writeLog(b *bolt.Bucket, g *generation, seq uint64, record []byte, size int) error {
	log, err := b.CreateBucketIfNotExists(g.bucket())
	if err != nil {
		return err
	}
	log.FillPercent = 1
	if err := cutLog(log, g.first, seq); err != nil {
		return err
	}
	keys := make([]byte, 0, (len(record)/size+1)*pieceKey)
	for i := uint32(0); len(record) > 0; i++ {
		n := min(size, len(record))
		keys = appendPieceKey(keys, seq, i)
		if err := log.Put(keys[len(keys)-pieceKey:], record[:n]); err != nil {
			return err
		}
		record = record[n:]
	}
	return nil
}

// cutLog removes records from seq on, and checks that the one before is there.
func cutLog(log *bolt.Bucket, first, seq uint64) error {
	c := log.Cursor()
	k, _ := c.Last()
	var stale [][]byte
	for ; k != nil && bytes.Compare(k, appendPieceKey(nil, seq, 0)) >= 0; k, _ = c.Prev() {
		stale = append(stale, bytes.Clone(k))
	}
	last := first - 1
	if k != nil {
		var err error
		if last, _, err = readPieceKey(k); err != nil {
			return err
		}
	}
	if last != seq-1 {
		return fmt.Errorf("the log ends with record %d, %d is expected: %w", last, seq-1, kv.ErrCorrupt)
	}
	for _, k := range stale {
		if err := log.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

// dropLog removes a generation that is folded: its pages become free, without
// being written.
func dropLog(b *bolt.Bucket, g *generation) error {
	if err := b.DeleteBucket(g.bucket()); err != nil && !errors.Is(err, berrors.ErrBucketNotFound) {
		return err
	}
	return nil
}
