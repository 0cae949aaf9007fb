package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// rowMaker makes what to execute of messages. What a message has no calls for, it
// refuses.
type rowMaker interface {
	calls(batch service.MessageBatch) ([]call, []refusal)
}

// eachMessage asks for the calls of every message. bind is called once for the
// batch.
func eachMessage(batch service.MessageBatch, bind func(service.MessageBatch) func(i int) ([]call, error)) (all []call, refused []refusal) {
	all = make([]call, 0, len(batch))
	of := bind(batch)
	for i := range batch {
		calls, err := of(i)
		if err != nil {
			refused = append(refused, refusal{i, err})
			continue
		}
		all = append(all, calls...)
	}
	return all, refused
}

const (
	// connectTimeout is how long a database may take to answer a new connection.
	connectTimeout = 15 * time.Second
	// attempts is how often a transaction is tried that others were in the way of.
	attempts = 4
	// mostPause is the longest pause between connections that are of no use.
	mostPause = 5 * time.Second
)

// writer implements service.BatchOutput.
type writer struct {
	settings
	maker rowMaker
	turns turns
	log   *service.Logger
	fs    fs.FS

	mu     sync.Mutex // protects what follows
	db     *sql.DB    // nil before Connect and after Close
	begun  bool       // the init statements were executed in this database
	lost   bool       // a connection broke since the last Connect
	faults int        // how many did since something was written
	closed bool
}

// Connect implements service.BatchOutput. Without a reason to speak to the
// database it does not: the first write does.
func (w *writer) Connect(ctx context.Context) error {
	if err := w.pause(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return service.ErrEndOfInput
	}
	if w.db == nil {
		db, err := w.engine.open()
		if err != nil {
			return err
		}
		db.SetMaxOpenConns(w.maxOpen)
		db.SetMaxIdleConns(w.maxIdle)
		db.SetConnMaxIdleTime(w.idleTime)
		db.SetConnMaxLifetime(w.lifeTime)
		w.db = db
	}
	if w.lost { // what is idle is of the same age as what broke
		w.db.SetMaxIdleConns(0)
		w.db.SetMaxIdleConns(w.maxIdle)
	}
	first := !w.begun && (w.init != "" || len(w.files) > 0)
	if !first && !w.lost && !w.verify {
		return nil
	}
	answer, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := w.db.PingContext(answer); err != nil {
		return w.engine.explain(err, nil)
	}
	if first {
		if err := w.begin(ctx); err != nil {
			return err
		}
	}
	w.begun, w.lost = true, false
	return nil
}

// pause waits before a connection that was of no use is made once more: a standby
// answers and takes no writes. Benthos itself waits only where Connect fails.
func (w *writer) pause(ctx context.Context) error {
	w.mu.Lock()
	faults := w.faults
	w.mu.Unlock()
	if faults < 2 {
		return nil
	}
	wait := time.NewTimer(min(10*time.Millisecond<<min(faults, 10), mostPause))
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin executes the init statements. Only a lost connection is an error.
func (w *writer) begin(ctx context.Context) error {
	paths, err := service.Globs(w.fs, w.files...)
	if err != nil {
		w.log.Warnf("%s: %v", fieldFiles, err)
	} else if len(paths) == 0 && len(w.files) > 0 {
		w.log.Warnf("%s %s: there is no such file", fieldFiles, strings.Join(w.files, ", "))
	}
	for _, path := range paths {
		text, err := fs.ReadFile(w.fs, path)
		if err != nil {
			w.log.Warnf("%s: %v", fieldFiles, err)
			continue
		}
		if err := w.initial(ctx, fmt.Sprintf("%s %q", fieldFiles, path), string(text)); err != nil {
			return err
		}
	}
	return w.initial(ctx, fieldInit, w.init)
}

func (w *writer) initial(ctx context.Context, what, text string) error {
	if text == "" {
		return nil
	}
	_, err := w.db.ExecContext(ctx, text)
	switch {
	case err == nil:
		return nil
	case w.engine.judge(err) == ofConnection || ctx.Err() != nil:
		return w.engine.explain(err, nil)
	}
	w.log.Warnf("%s failed, and is not tried again before the next start: %v", what, err)
	return nil
}

// WriteBatch implements service.BatchOutput.
func (w *writer) WriteBatch(ctx context.Context, batch service.MessageBatch) error {
	w.mu.Lock()
	db := w.db
	w.mu.Unlock()
	if db == nil {
		return service.ErrNotConnected
	}
	calls, refused := w.maker.calls(batch)
	more, err := w.settle(ctx, db, calls)
	switch {
	case err == nil:
		w.mu.Lock()
		w.faults = 0
		w.mu.Unlock()
		return failed(batch, append(refused, more...))
	case ctx.Err() != nil:
		return ctx.Err()
	case w.engine.judge(err) == ofConnection:
		w.fault(err)
		return service.ErrNotConnected
	}
	return err
}

// fault reports a lost connection, the first of those that broke together.
func (w *writer) fault(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.lost {
		w.log.Warnf("The connection failed, what was not written is written again: %v", err)
		w.faults++
	}
	w.lost = true
	if errors.Is(err, errVanished) {
		w.begun = false
	}
}

// settle commits all calls but those that are refused. With an error nothing is
// committed, or it is not known.
func (w *writer) settle(ctx context.Context, db *sql.DB, calls []call) (refused []refusal, err error) {
	if len(calls) == 0 {
		return nil, nil
	}
	each := false
	for try := 1; ; try++ {
		refused, err = w.attempt(ctx, db, calls, each)
		switch {
		case err != nil && w.engine.judge(err) == ofOthers && try < attempts && ctx.Err() == nil:
			w.turns.conflict()
		case err != nil || len(refused) == 0 || each:
			return refused, err
		default: // undone by one message: the others, with savepoints
			each = true
			if calls[0].row == calls[len(calls)-1].row {
				return refused, nil
			}
		}
	}
}

func (w *writer) attempt(ctx context.Context, db *sql.DB, calls []call, each bool) ([]refusal, error) {
	defer w.turns.take()()
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, w.engine.explain(err, nil)
	}
	defer conn.Close()
	return w.engine.write(ctx, conn, calls, each)
}

// failed names the messages that were refused.
func failed(batch service.MessageBatch, refused []refusal) error {
	switch {
	case len(refused) == 0:
		return nil
	case len(batch) == 1:
		return refused[0].err
	}
	headline := refused[0].err
	if len(refused) > 1 {
		headline = fmt.Errorf("%d of %d messages were refused, the first: %w", len(refused), len(batch), headline)
	}
	named := service.NewBatchError(batch, headline)
	for _, r := range refused {
		named.Failed(r.row, r.err)
	}
	return named
}

// Close implements service.BatchOutput.
func (w *writer) Close(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.db == nil {
		return nil
	}
	db := w.db
	w.db = nil
	return db.Close()
}
