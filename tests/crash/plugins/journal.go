package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// Entry is one line of a journal.
type Entry struct {
	Payload  []byte // as it is
	RowKey   string `json:",omitempty"`
	RowID    string `json:",omitempty"`
	Revision string `json:",omitempty"`
	Timing   string `json:",omitempty"`
	LateBy   string `json:",omitempty"`
	Err      string `json:",omitempty"`
}

func init() {
	spec := service.NewConfigSpec().Fields(
		service.NewStringField("path"),
		service.NewFloatField("refuse").Description("The share of batches that are refused in whole or in part.").Default(0.0))
	service.MustRegisterBatchOutput("test_journal", spec, func(conf *service.ParsedConfig, _ *service.Resources) (service.BatchOutput, service.BatchPolicy, int, error) {
		path, err := conf.FieldString("path")
		if err != nil {
			return nil, service.BatchPolicy{}, 0, err
		}
		refuse, err := conf.FieldFloat("refuse")
		return &journal{path: path, refuse: refuse}, service.BatchPolicy{}, 4, err
	})
}

// journal appends each message as a line that is on disk before it is
// acknowledged. At random it refuses a batch before or after it wrote it, or only
// some of its messages.
type journal struct {
	path   string
	refuse float64

	mu   sync.Mutex // protects file
	file *os.File
}

var errRefused = errors.New("refused at random")

// StartedEnv names a file descriptor to which a journal writes a line when its
// stream runs.
const StartedEnv = "TEST_STARTED_FD"

// Connect implements service.BatchOutput.
func (j *journal) Connect(context.Context) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file != nil {
		return nil
	}
	file, err := os.OpenFile(j.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	j.file = file
	var fd uintptr
	if _, err := fmt.Sscan(os.Getenv(StartedEnv), &fd); err == nil {
		_, _ = os.NewFile(fd, "started").WriteString("started\n")
	}
	return nil
}

// WriteBatch implements service.BatchOutput.
func (j *journal) WriteBatch(_ context.Context, batch service.MessageBatch) error {
	refused := map[int]bool{}
	after := false
	if rand.Float64() < j.refuse {
		switch rand.IntN(3) {
		case 0:
			return errRefused
		case 1:
			after = true
		default:
			for i := range batch {
				if rand.IntN(2) == 0 {
					refused[i] = true
				}
			}
		}
	}
	if err := j.append(batch, refused); err != nil {
		return err
	}
	if after {
		return errRefused
	}
	if len(refused) == 0 {
		return nil
	}
	failure := service.NewBatchError(batch, errRefused)
	for i := range refused {
		failure = failure.Failed(i, errRefused)
	}
	return failure
}

func (j *journal) append(batch service.MessageBatch, without map[int]bool) error {
	var text []byte
	for i, msg := range batch {
		if without[i] {
			continue
		}
		payload, err := msg.AsBytes()
		if err != nil {
			return err
		}
		get := func(key string) string { value, _ := msg.MetaGet(key); return value }
		e := Entry{Payload: payload, RowKey: get("windowed_row_key"), RowID: get("windowed_row_id"),
			Revision: get("windowed_revision"), Timing: get("windowed_timing"), LateBy: get("windowed_late_by")}
		if err := msg.GetError(); err != nil {
			e.Err = err.Error()
		}
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		text = append(append(text, line...), '\n')
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.Write(text); err != nil {
		return err
	}
	return j.file.Sync()
}

// Close implements service.BatchOutput.
func (j *journal) Close(context.Context) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}
