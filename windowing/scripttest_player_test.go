package windowing_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
)

// player runs one script in one variant, as a host would.
type player struct {
	t       *testing.T
	variant variant
	script  *script
	now     watermark.Clock
	store   *playStore
	chain   *windowing.Chain
	stages  []stage
	ids     map[string]bool // row ids that came out
}

// unit is what runs between two commits.
type unit struct {
	signal windowing.Signal
	lines  []string
	ids    []string
}

var errDisk = errors.New("no space left")

func newPlayer(t *testing.T, s *script, v variant) *player {
	p := &player{t: t, variant: v, script: s, ids: map[string]bool{}}
	p.now = watermark.Clock{Wall: 1_700_000_000 * watermark.Time(time.Second), Mono: time.Hour}
	p.store = newPlayStore(t, v.store)
	p.load(p.store.kv)
	p.commit()
	return p
}

// load makes a chain from the definition and the state in the store.
func (p *player) load(from kv.Reader) {
	p.stages = makeStages(p.t, p.script.stages)
	cfg := windowing.Config{Start: p.now, Limit: p.variant.part, Memory: p.variant.memory}
	for _, st := range p.stages {
		cfg.Stages = append(cfg.Stages, st.Stage)
	}
	chain, err := windowing.NewChain(cfg)
	require.NoError(p.t, err)
	unused, err := chain.Load(from)
	require.NoError(p.t, err)
	require.Empty(p.t, unused)
	p.chain = chain
}

func (p *player) step(st step) []string {
	c := st.commands[0]
	switch c.verb {
	case "event":
		rows := func() []windowing.Row { return eventRows(p.t, st.commands) }
		return p.run(func() { p.chain.Begin(rows(), p.now) })
	case "watermark":
		at := scriptTime(p.t, c.args[0].value)
		return p.run(func() { p.chain.Begin(heartbeats(p.stages, at), p.now) })
	case "tick":
		d, err := time.ParseDuration(c.args[0].value)
		require.NoError(p.t, err)
		p.now.Mono += d
		p.now.Wall = p.now.Wall.Add(d)
		return p.run(func() { p.chain.BeginTick(p.now) })
	case "restart":
		p.commit()
		p.restart()
		return nil
	case "end":
		return p.end()
	}
	require.Fail(p.t, "unknown command", c.verb)
	return nil
}

// run takes the chain through one step, with the faults of the variant.
func (p *player) run(begin func()) (lines []string) {
	for first := true; ; first = false {
		again := func() unit {
			if first {
				begin()
			}
			return p.unit()
		}
		u := again()
		if p.variant.fault == lostCommit {
			p.restart()
			require.Equal(p.t, u, again(), "repeated after a crash before the commit")
		}
		p.note(u)
		lines = append(lines, u.lines...)
		if !p.variant.single {
			p.commit()
		}
		if p.variant.fault == restarts {
			p.restart()
		}
		if u.signal == windowing.Done {
			require.False(p.t, p.chain.Open())
			return lines
		}
		require.True(p.t, p.chain.Open())
	}
}

// unit runs until the chain wants a commit.
func (p *player) unit() unit {
	for {
		signal := p.chain.Run()
		require.NoError(p.t, p.chain.Err())
		if signal == windowing.Call {
			_, rows := p.chain.Pending()
			p.chain.Resume(dropHeartbeats(rows))
			continue
		}
		u := unit{signal: signal}
		for _, row := range p.chain.Take() {
			u.lines = append(u.lines, describe(p.t, row))
			if row.Mark != nil && row.Mark.RowKey != "" {
				u.ids = append(u.ids, windowing.RowID(row.Mark.RowKey, row.Mark.Revision))
			}
		}
		return u
	}
}

// note checks the identities of what came out.
func (p *player) note(u unit) {
	for _, id := range u.ids {
		require.False(p.t, p.ids[id], "row id %s came out twice", id)
		p.ids[id] = true
		require.True(p.t, json.Valid([]byte(id)), id)
		require.Equal(p.t, -1, strings.IndexFunc(id, func(r rune) bool { return r < ' ' || r > '~' }), "not ASCII: %s", id)
	}
}

// commit saves what changed. A chain is told only once.
func (p *player) commit() {
	var b kv.Batch
	p.chain.SaveDefinition(&b)
	p.chain.Save(&b)
	if p.variant.fault == failedCommit {
		p.store.failing = true
		require.ErrorIs(p.t, p.store.Commit(&b), errDisk)
	}
	require.NoError(p.t, p.store.Commit(&b))
	p.chain.Committed()
}

func (p *player) restart() {
	p.store.reopen()
	p.load(p.store.kv)
}

// end ends the input, evaluates a copy of the chain at the end of time, and
// looks at what the operators would leave in the store.
func (p *player) end() []string {
	p.chain.EndInput()
	lines := p.run(func() {
		p.chain.EndInput()
		p.chain.BeginTick(p.now)
	})
	p.commit()
	p.load(p.store.kv)
	p.chain.BeginFlush(p.now)
	for signal := windowing.More; signal != windowing.Done; {
		u := p.unit()
		p.note(u)
		lines = append(lines, u.lines...)
		signal = u.signal
	}
	p.checkEmpty()
	return lines
}

// checkEmpty saves the flushed operators into a copy of the store: no more than
// a record of their progress may be left.
func (p *player) checkEmpty() {
	var b kv.Batch
	require.NoError(p.t, p.store.kv.Scan(nil, nil, func(key, value []byte) error {
		b.Put(key, value)
		return nil
	}))
	for _, st := range p.stages {
		if st.Operator != nil {
			st.Operator.Save(kv.SubWriter(&b, "op/"+st.Name+"/"))
		}
	}
	left := kv.NewMemory()
	require.NoError(p.t, left.Commit(&b))
	for _, st := range p.stages {
		if st.Operator == nil || keepsAll(st) {
			continue
		}
		require.NoError(p.t, kv.SubReader(left, "op/"+st.Name+"/").Scan(nil, nil, func(key, _ []byte) error {
			require.True(p.t, bytes.Equal(key, []byte("p")), "%s left %q in the store", st.Name, key)
			return nil
		}))
		if sized, ok := st.Operator.(interface{ Sizes() (windows, groups int) }); ok {
			windows, groups := sized.Sizes()
			require.Zero(p.t, windows, "windows of %s", st.Name)
			require.Zero(p.t, groups, "groups of %s", st.Name)
		}
	}
}

// keepsAll says that the operator drops nothing.
func keepsAll(st stage) bool {
	return slices.Contains(st.Definition, windowing.Setting{Field: "output_mode", Value: "complete"})
}

func (p *player) close() { p.store.close() }
