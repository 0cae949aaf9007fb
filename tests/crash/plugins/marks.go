package plugins

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/connect-windowed/connect-windowed/tests/random"
)

// marks keeps what was acknowledged, like the committed offsets of a consumer
// group: for each partition the place of the first message that is not.
type marks struct {
	attempt uint64 // how often the source was opened before
	next    []int  // as it was when opened

	mu    sync.Mutex // protects the fields below
	file  *os.File
	above []map[int]bool // acknowledged at or above the mark
	mark  []int
}

// MarksFile is the name of the file of the acknowledged positions in the folder
// of a source: a line "open", or "<partition> <place>", each on disk before the
// next thing happens.
const MarksFile = "acknowledged"

func openMarks(dir string, parts [][]random.Event) (*marks, error) {
	m := &marks{next: make([]int, len(parts)), mark: make([]int, len(parts)), above: make([]map[int]bool, len(parts))}
	path := filepath.Join(dir, MarksFile)
	if file, err := os.Open(path); err == nil {
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			var p, next int
			if _, err := fmt.Sscanf(lines.Text(), "%d %d.", &p, &next); err == nil {
				m.next[p] = next
			} else {
				m.attempt++
			}
		}
		_ = file.Close()
	}
	for p := range parts {
		m.mark[p], m.above[p] = m.next[p], map[int]bool{}
	}
	var err error
	if m.file, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		return nil, err
	}
	return m, m.write("open\n")
}

func (m *marks) write(text string) error {
	if _, err := m.file.WriteString(text); err != nil {
		return err
	}
	return m.file.Sync()
}

// acknowledge records the items of a batch without those that failed.
func (m *marks) acknowledge(items, failed []item) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	type place struct{ partition, index int }
	bad := map[place]bool{}
	for _, it := range failed {
		bad[place{it.Partition, it.index}] = true
	}
	for _, it := range items {
		if !bad[place{it.Partition, it.index}] {
			m.above[it.Partition][it.index] = true
		}
	}
	text := ""
	for p := range m.mark {
		before := m.mark[p]
		for m.above[p][m.mark[p]] {
			delete(m.above[p], m.mark[p])
			m.mark[p]++
		}
		if m.mark[p] > before {
			text += fmt.Sprintf("%d %d.\n", p, m.mark[p])
		}
	}
	if text == "" {
		return nil
	}
	return m.write(text)
}

// Close closes the file.
func (m *marks) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.file.Close()
}
