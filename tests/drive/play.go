package drive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/machine"
)

// waitLimit is how long something that is due may take to come. A disk shared with
// others has been seen to take 20 seconds for one sync.
const waitLimit = 2 * time.Minute

// Play is one run of a case in one form.
type Play struct {
	Run      machine.Run
	Form     Form
	Encoding Encoding
	Durable  bool   // state in a file, else in memory
	Tight    bool   // of that nothing stays in memory that need not
	Late     string // late: of the operators, "" leaves the default
}

// Name describes the play.
func (p Play) Name() string {
	state := "memory"
	if p.Durable {
		state = "file"
	}
	if p.Durable && p.Tight {
		state = "file, little memory"
	}
	late := "late dropped"
	if p.Late != "" {
		late = "late: " + p.Late
	}
	return fmt.Sprintf("%s, %s, %s", p.Encoding.Name, state, late)
}

// Outcome is what came out of a play.
type Outcome struct {
	Rows    []machine.Got
	Final   []Message // the rows again, with their metadata
	Late    []Message // passed on by an operator
	Failed  []Message // passed on with an error
	LateAt  []int     // by late row: the batch after which it came
	Meters  []*Meter  // one for each start
	Flagged int       // messages sent by the harness itself that carry an error
	AfterW  []*int64  // by batch: watermark that a row of it shows, nil: no row shows one
}

// player is the state of a play that goes on.
type player struct {
	Play
	t      testing.TB
	out    Outcome
	clock  *Clock
	pipe   *Pipe
	state  string // path, "" in memory
	config []json.RawMessage
	killed bool // rows may come again
	ids    map[string]string
	read   int // messages of the sink that were seen
	batch  int
	step   int
	marks  int // barriers sent
}

// Start plays all steps and gives what came out, or fails the test.
func (p Play) Start(t testing.TB) Outcome {
	q := &player{Play: p, t: t, clock: NewClock(p.Run.Clock), config: p.Run.Config, ids: map[string]string{}}
	t.Cleanup(SetClock(q.clock))
	if p.Durable {
		q.state = filepath.Join(t.TempDir(), "state.db")
	}
	require.NoError(t, q.start())
	for i := range p.Run.Steps {
		q.step = i + 1
		q.do(&p.Run.Steps[i])
		if t.Failed() {
			t.Logf("log of the pipeline:\n%s", q.pipe.Logs)
			t.FailNow()
		}
	}
	q.checkState()
	require.NoError(t, q.pipe.Stop())
	q.collect(false)
	return q.out
}

// checkState waits for the gauge that says how much is in state to say what the
// run expects at its end. What has left memory is counted roughly.
func (q *player) checkState() {
	if q.Run.State == nil || q.Tight {
		return
	}
	const gauge = "windowed_groups"
	require.Eventually(q.t, func() bool {
		n, found := q.pipe.Meter.Sum(gauge)
		return found && n == int64(*q.Run.State)
	}, waitLimit, 10*time.Millisecond, "%s should become %d: %v", gauge, *q.Run.State, q.pipe.Meter.All())
}

func (q *player) start() error {
	setup := Setup{Processors: append(append([]json.RawMessage{}, q.Encoding.Front...), q.config...),
		Position: q.Run.Position, OnEnd: q.Run.OnEnd, StateFile: q.state, Tight: q.Tight, Late: q.Late}
	pipe, err := Start(q.Form.Build(setup))
	if pipe != nil {
		q.pipe, q.read = pipe, 0
		q.out.Meters = append(q.out.Meters, pipe.Meter)
		q.t.Cleanup(func() { _ = pipe.Stop() })
	}
	return err
}

func (q *player) do(s *machine.Step) {
	switch {
	case s.IsBatch:
		q.batch++
		q.out.AfterW = append(q.out.AfterW, nil)
		q.send(s)
	case s.Tick > 0:
		q.clock.Advance(s.Tick)
		q.settle()
	case s.Wall != 0:
		q.clock.StepWall(s.Wall)
		q.settle()
	case s.Restart:
		q.restart(s)
	case s.Kill:
		q.kill(q.snapshot())
	case s.End:
		q.pipe.Feed.End()
		require.NoError(q.t, q.pipe.WaitEnd(stopLimit))
		q.collect(true)
	}
}

// send offers a batch and waits until all that comes of it has come.
func (q *player) send(s *machine.Step) {
	if s.Refuse > 0 {
		q.refuse(s.Refuse)
	}
	var snapshot string
	var onAck func()
	if s.KillBeforeAck {
		onAck = func() { snapshot = q.snapshot() }
	}
	d := q.pipe.Feed.Send(func() service.MessageBatch { return q.messages(s.Batch) }, onAck)
	if !q.wait(d.Acked()) {
		require.Fail(q.t, "no acknowledgement", "batch %d (step %d) within %s\n%v\n%s\n%s", q.batch, q.step, waitLimit, q.pipe.Meter.All(), q.pipe.Logs, stacks())
	}
	if s.KillBeforeAck {
		q.kill(snapshot)
		return
	}
	q.settle()
}

// refuse lets the output refuse the next n batches that are not barriers.
func (q *player) refuse(n int) {
	q.pipe.Sink.Refuse(func(batch []Message) (no []int) {
		for i := range batch {
			if n > 0 && batch[i].Get(metaBarrier) == "" {
				no = append(no, i)
			}
		}
		if len(no) > 0 {
			n--
		}
		return no
	})
}

func (q *player) messages(rows []json.RawMessage) service.MessageBatch {
	batch := service.MessageBatch{}
	for _, raw := range rows {
		msg := q.Encoding.Message(raw)
		msg.MetaSetMut(metaInput, "yes")
		batch = append(batch, msg)
	}
	return batch
}

func (q *player) wait(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-q.pipe.Ended().Done():
		return false
	case <-time.After(waitLimit):
		return false
	}
}

// metaBarrier marks a message of the harness.
const metaBarrier = "test_barrier"

// settle waits until whatever the step let out has reached the output. Where an
// acknowledgement says so already, that is all. Else the rows that are due are
// waited for, and then a message that carries an error is sent through: it takes
// part in nothing and comes out behind the rows that were let out before it.
func (q *player) settle() {
	if !q.Form.Settled {
		due := q.Run.DueBy(q.step)
		q.pipe.Sink.Wait(q.pipe.Ended(), waitLimit, func(all []Message) bool {
			n := 0
			for _, m := range all[q.read:] {
				if m.Get(MetaRowID) != "" && m.Err == nil {
					n++
				}
			}
			return len(q.out.Rows)+n >= due
		})
		q.barrier()
	}
	q.collect(false)
}

var errBarrier = errors.New("a barrier of the test")

func (q *player) barrier() {
	q.marks++
	mark := fmt.Sprint(q.marks)
	q.pipe.Feed.Send(func() service.MessageBatch {
		msg := service.NewMessage([]byte(`{"_p":"barrier","_o":` + mark + `}`))
		msg.MetaSetMut(metaBarrier, mark)
		msg.SetError(errBarrier)
		return service.MessageBatch{msg}
	}, nil)
	q.out.Flagged++
	if !q.pipe.Sink.Wait(q.pipe.Ended(), waitLimit, func(all []Message) bool {
		return slices.ContainsFunc(all[q.read:], func(m Message) bool { return m.Get(metaBarrier) == mark }) // a tick may come behind it
	}) {
		require.Fail(q.t, "a message that carries an error does not come out", "step %d\n%s", q.step, q.pipe.Logs)
	}
}

// collect sorts what has reached the output since the last time.
func (q *player) collect(atEnd bool) {
	all := q.pipe.Sink.Messages()
	for _, m := range all[q.read:] {
		switch {
		case m.Get(metaBarrier) != "":
			if m.Err == nil {
				require.Fail(q.t, "a message lost its error on the way")
			}
		case m.Get(MetaLateOperator) != "":
			if q.killed && holds(q.out.Late, m) {
				continue
			}
			q.out.Late = append(q.out.Late, m)
			q.out.LateAt = append(q.out.LateAt, q.batch)
			q.sawWatermark(m)
		case m.Get(MetaRowID) == "" && m.Err != nil:
			if q.killed && holds(q.out.Failed, m) {
				continue
			}
			q.out.Failed = append(q.out.Failed, m)
		case !q.again(m):
			q.out.Rows = append(q.out.Rows, machine.Got{Payload: m.Payload, Batch: q.batch, Step: q.step, AtEnd: atEnd,
				Timing: m.Get(MetaTiming), Failed: m.Err != nil})
			q.out.Final = append(q.out.Final, m)
			q.sawWatermark(m)
		}
	}
	q.read = len(all)
}

// holds says that a message with this payload is in the list. A message that was
// passed on has no row id to recognise it by when it comes again after a crash.
func holds(list []Message, m Message) bool {
	return slices.ContainsFunc(list, func(x Message) bool { return bytes.Equal(x.Payload, m.Payload) })
}

// again says that a row came before with the same row id, which is right after a
// crash and only then. The same id with another payload never is.
func (q *player) again(m Message) bool {
	id := m.Get(MetaRowID)
	if id == "" {
		return false
	}
	before, seen := q.ids[id]
	q.ids[id] = string(m.Payload)
	if !seen {
		return false
	}
	if before != string(m.Payload) {
		require.Fail(q.t, "one row id, two rows", "%s: %s and %s", id, before, m.Payload)
	}
	return q.killed
}

func (q *player) sawWatermark(m Message) {
	if text := m.Get(MetaWatermark); text != "" && q.batch > 0 {
		ns, err := machine.ParseTime(text)
		require.NoError(q.t, err)
		q.out.AfterW[q.batch-1] = &ns
	}
}

func (q *player) restart(s *machine.Step) {
	require.NoError(q.t, q.pipe.Stop())
	q.collect(false)
	if s.Config != nil {
		q.config = s.Config
	}
	err := q.start()
	if s.Error == "" {
		require.NoError(q.t, err)
		q.settle()
		return
	}
	require.ErrorContains(q.t, err, s.Error)
}

func (q *player) snapshot() string {
	to := filepath.Join(q.t.TempDir(), "state.db")
	if q.state == "" {
		require.Fail(q.t, "a kill needs a state file")
	}
	require.NoError(q.t, Snapshot(q.state, to))
	return to
}

// kill goes on with the state as a crash leaves it. What becomes of the old
// pipeline afterwards is of no account.
func (q *player) kill(snapshot string) {
	q.collect(false)
	old := q.pipe
	q.killed = true
	q.state = snapshot
	require.NoError(q.t, q.start())
	require.NoError(q.t, old.Stop())
	q.settle()
}

// Unchanged says whether a message is one of the rows of the run, unchanged. Where
// a processor of the run changes rows, nothing can be said.
func (p Play) Unchanged(m Message) bool {
	if HasOperator(p.Run.Config, "mapping") {
		return m.Get(metaInput) == "yes"
	}
	for _, s := range p.Run.Steps {
		for _, raw := range s.Batch {
			if p.Encoding.Raw && bytes.Equal(Payload(raw), m.Payload) || !p.Encoding.Raw && SameJSON(Payload(raw), m.Payload) {
				return m.Get(metaInput) == "yes"
			}
		}
	}
	return false
}
