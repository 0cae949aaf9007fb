package crash

import (
	"os"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/life"
)

// limitFiles sets how large the files of a process may grow, as a full disk does:
// a write past the limit fails.
func limitFiles(t *testing.T, p *process, size uint64) {
	t.Helper()
	limit := syscall.Rlimit{Cur: size, Max: ^uint64(0)}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(p.Cmd.Process.Pid), uintptr(syscall.RLIMIT_FSIZE),
		uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	require.Zero(t, errno, "prlimit: %s", errno)
}

const unlimited = ^uint64(0)

// fill runs a halting scenario until its state file cannot grow any more and the product
// has said so. Nothing is acknowledged from then on.
func fill(t *testing.T, s *scenario) *process {
	t.Helper()
	p := s.run(t, "")
	p.ready()
	waitFor(t, p, "a first commit", func() bool { return s.acknowledged(t) > 3 })
	info, err := os.Stat(s.state())
	require.NoError(t, err)
	limitFiles(t, p, uint64(info.Size()))
	s.goOn(t)
	waitFor(t, p, "a word about the failed commit", func() bool { return contains(p.Log.String(), "file too large", "could not be written", s.state()) })
	// What was committed before may still be on its way to the source. It ends: an
	// acknowledgement without a commit would follow the messages.
	marks := -1
	waitFor(t, p, "the last acknowledgement of what was committed before", func() bool {
		before := marks
		marks = s.acknowledged(t)
		time.Sleep(300 * time.Millisecond) // long enough for an acknowledgement that must not come
		return marks == before && marks == s.acknowledged(t)
	})
	rows := len(s.entries(t))
	time.Sleep(300 * time.Millisecond)
	require.Equal(t, marks, s.acknowledged(t), "acknowledged while nothing can be committed\n%s", p.Log)
	require.Len(t, s.entries(t), rows, "rows were passed on while nothing can be committed")
	return p
}

func TestDiskFull(t *testing.T) {
	for _, form := range []string{inputHost, processorHost, standalone} {
		for what, leave := range map[string]func(t *testing.T, s *scenario, p *process){
			"room again": func(t *testing.T, _ *scenario, p *process) {
				limitFiles(t, p, unlimited)
				require.Zero(t, p.wait(), "exit status\n%s", p.Log)
			},
			"killed": func(t *testing.T, s *scenario, p *process) {
				p.Kill()
				s.finish(t)
			},
			"stopped": func(t *testing.T, s *scenario, p *process) {
				p.term()
				requireClear(t, p)
				s.finish(t)
			},
		} {
			t.Run(form+"/"+what, func(t *testing.T) {
				t.Parallel()
				s := halting(t, form, orders(life.Seed(t), 5000, 4), 30) // far more than its file has room for
				leave(t, s, fill(t, s))
				s.verify(t)
			})
		}
	}
}

func contains(text string, words ...string) bool {
	for _, word := range words {
		if !containsFold(text, word) {
			return false
		}
	}
	return true
}
