package statecache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// What bbolt does with a damaged file is panic, fault or, worse, hand out
// pages that are in use. So the few pages that it trusts are read by hand
// first: both meta pages, the head of the root page, and the free list.
// The layout is that of bbolt version 2, in the byte order of the machine.
const (
	boltMagic      = 0xED0CDAED
	boltVersion    = 2
	pageHeader     = 16 // id 8, flags 2, count 2, overflow 4
	metaSize       = 64 // without the page header
	metaSum        = 56 // bytes of a meta that its checksum covers
	flagBranch     = 0x01
	flagLeaf       = 0x02
	flagMeta       = 0x04
	flagFreelist   = 0x10
	noFreelist     = ^uint64(0)
	minPageShift   = 10 // 1 KiB
	maxPageShift   = 24 // 16 MiB
	firstDataPage  = 2  // after the two meta pages
	countInFirstID = 0xFFFF
)

var (
	native = binary.NativeEndian

	errNoBolt   = errors.New("no bbolt meta page")
	errTooShort = fmt.Errorf("%w: the file is too short", errNoBolt)
)

// meta is one of the two heads of a file; the one with the larger txid counts.
type meta struct {
	pageSize                    int64
	root, freelist, pages, txid uint64
}

// page is the header of any page.
type page struct {
	id       uint64
	flags    uint16
	count    uint16
	overflow uint32
}

// precheck reads what bbolt will trust. An empty file is new and fine, and one
// whose creation was cut off is made so. Else the file is only read, and the
// error wraps ErrForeign or is a *DamageError.
func precheck(f *os.File, path string) error {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	m, err := readMetas(f, info.Size())
	if err == nil {
		err = checkPages(f, m, info.Size())
	}
	var why foreign
	switch {
	case err == nil:
		return nil
	case unborn(f, info.Size()):
		return f.Truncate(0)
	case errors.As(err, &why):
		return fmt.Errorf("%w: %q (%d bytes) %w. Give another path, or move it away", ErrForeign, path, info.Size(), why)
	}
	return &DamageError{path, "its head", err}
}

// foreign says why a file, whole as it may be, is not ours.
type foreign string

func (f foreign) Error() string { return string(f) }

// unborn says whether bbolt was interrupted while it made the file, by a kill,
// a power failure or a full disk, so that it never held anything: its four
// pages are zeros, or begin with the meta of transaction 0, which the first
// commit would have replaced.
func unborn(f *os.File, size int64) bool {
	if m, err := readMeta(f, 0); err == nil {
		return m.txid == 0
	}
	if size < pageHeader || size > 4*int64(os.Getpagesize()) {
		return false
	}
	data := make([]byte, size)
	_, err := f.ReadAt(data, 0)
	return err == nil && len(bytes.Trim(data, "\x00")) == 0
}

// readMetas reads both metas and returns the current one. Both must be good:
// a meta page is written whole, so a broken one is damage, and to fall back to
// the older one would silently forget a commit that was acknowledged.
func readMetas(f *os.File, size int64) (meta, error) {
	first, err0 := readMeta(f, 0)
	second, err1 := meta{}, error(nil)
	if err0 == nil {
		second, err1 = readMeta(f, first.pageSize)
	} else if errors.Is(err0, errNoBolt) && !findMeta(f, size) {
		return meta{}, foreign("is no bbolt file")
	}
	older, newer := first, second
	if first.txid > second.txid {
		older, newer = second, first
	}
	switch {
	case err0 != nil:
		return meta{}, fmt.Errorf("the first meta page, %w", err0)
	case err1 != nil:
		return meta{}, fmt.Errorf("the second meta page, %w", err1)
	case first.pageSize != second.pageSize:
		return meta{}, fmt.Errorf("the meta pages disagree about the page size, %d and %d", first.pageSize, second.pageSize)
	case newer.txid-older.txid > 1:
		return meta{}, fmt.Errorf("the meta pages are of transactions %d and %d", older.txid, newer.txid)
	}
	return newer, nil
}

// findMeta looks for a second meta page without knowing the page size, as
// bbolt does: a bbolt file whose first page is broken is no foreign file.
func findMeta(f *os.File, size int64) bool {
	for shift := minPageShift; shift <= maxPageShift && int64(1)<<shift < size; shift++ {
		if _, err := readMeta(f, 1<<shift); err == nil {
			return true
		}
	}
	return false
}

func readMeta(f *os.File, at int64) (meta, error) {
	var buf [pageHeader + metaSize]byte
	if _, err := f.ReadAt(buf[:], at); err != nil {
		return meta{}, cutShort(err)
	}
	b := buf[pageHeader:]
	sum := fnv.New64a()
	_, _ = sum.Write(b[:metaSum])
	m := meta{
		pageSize: int64(native.Uint32(b[8:])),
		root:     native.Uint64(b[16:]),
		freelist: native.Uint64(b[32:]),
		pages:    native.Uint64(b[40:]),
		txid:     native.Uint64(b[48:]),
	}
	switch {
	case native.Uint32(b) != boltMagic:
		return meta{}, errNoBolt
	case native.Uint64(b[metaSum:]) != sum.Sum64():
		return meta{}, errors.New("wrong checksum")
	case native.Uint32(b[4:]) != boltVersion:
		return meta{}, fmt.Errorf("bbolt version %d, %d expected", native.Uint32(b[4:]), boltVersion)
	case m.pageSize < 1<<minPageShift || m.pageSize > 1<<maxPageShift || m.pageSize&(m.pageSize-1) != 0:
		return meta{}, fmt.Errorf("page size %d", m.pageSize)
	}
	return m, nil
}

// checkPages holds the file against its meta.
func checkPages(f *os.File, m meta, size int64) error {
	if uint64(size/m.pageSize) < m.pages {
		return fmt.Errorf("the file has %d bytes, its head speaks of %d pages of %d: it was cut", size, m.pages, m.pageSize)
	}
	if m.freelist == noFreelist {
		return foreign("has no list of free pages: another program wrote it, with NoFreelistSync")
	}
	root, err := readPage(f, m, m.root)
	if err != nil {
		return fmt.Errorf("the root page, %w", err)
	}
	if root.flags != flagLeaf && root.flags != flagBranch {
		return fmt.Errorf("the root page %d has flags %#x", m.root, root.flags)
	}
	if err := checkFreelist(f, m); err != nil {
		return fmt.Errorf("the list of free pages, %w", err)
	}
	return nil
}

// checkFreelist reads the ids of the free pages: they ascend and lie between
// the metas and the end. A page of zeros in there would make bbolt write over
// its own head.
func checkFreelist(f *os.File, m meta) error {
	p, err := readPage(f, m, m.freelist)
	if err != nil {
		return err
	}
	if p.flags != flagFreelist {
		return fmt.Errorf("page %d has flags %#x", m.freelist, p.flags)
	}
	r := io.NewSectionReader(f, int64(m.freelist)*m.pageSize+pageHeader, (int64(p.overflow)+1)*m.pageSize-pageHeader)
	room, count := uint64(r.Size()/8), uint64(p.count)
	if p.count == countInFirstID {
		var first [8]byte
		if _, err := io.ReadFull(r, first[:]); err != nil {
			return cutShort(err)
		}
		room, count = room-1, native.Uint64(first[:])
	}
	if count > room {
		return fmt.Errorf("%d entries in room for %d", count, room)
	}
	last := uint64(firstDataPage - 1)
	buf := make([]byte, 8*4096)
	for count > 0 {
		n := min(count, uint64(len(buf)/8))
		if _, err := io.ReadFull(r, buf[:8*n]); err != nil {
			return cutShort(err)
		}
		for i := range n {
			id := native.Uint64(buf[8*i:])
			if id <= last || id >= m.pages {
				return fmt.Errorf("page %d follows page %d of %d", id, last, m.pages)
			}
			last = id
		}
		count -= n
	}
	return nil
}

// readPage reads the header of a page and checks that it is what it says.
func readPage(f *os.File, m meta, id uint64) (page, error) {
	if id < firstDataPage || id >= m.pages {
		return page{}, fmt.Errorf("page %d of %d", id, m.pages)
	}
	var b [pageHeader]byte
	if _, err := f.ReadAt(b[:], int64(id)*m.pageSize); err != nil {
		return page{}, cutShort(err)
	}
	p := page{native.Uint64(b[:]), native.Uint16(b[8:]), native.Uint16(b[10:]), native.Uint32(b[12:])}
	if p.id != id || uint64(p.overflow) >= m.pages-id {
		return page{}, fmt.Errorf("page %d says that it is page %d with %d more", id, p.id, p.overflow)
	}
	return p, nil
}

func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errTooShort
	}
	return err
}
