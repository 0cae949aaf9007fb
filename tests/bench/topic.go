package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/connect-windowed/connect-windowed/tests/kafka/broker"
	"github.com/connect-windowed/connect-windowed/tests/ports"
)

// partitions of a topic.
const partitions = 4

// topics are the topics of a benchmark, by the size of their records.
type topics struct {
	settings
	dir    string
	client *kgo.Client
	own    *broker.Real // nil: somebody else's broker
	filled []string     // to be deleted at the end
	runs   int
}

// openTopics finds or starts a broker and fills the topics that are wanted. It is
// nil where no broker can be had, which is said once.
func openTopics(ctx context.Context, dir string, s settings, wanted []variant) (*topics, error) {
	sizes := map[int]bool{}
	for _, v := range wanted {
		if v.size > 0 {
			sizes[v.size] = true
		}
	}
	if len(sizes) == 0 {
		return nil, nil
	}
	t := &topics{settings: s, dir: dir}
	if t.broker == "" {
		own, err := broker.StartReal(filepath.Join(dir, "kafka"))
		if err != nil {
			if os.Getenv("BENCH_KAFKA") == "1" {
				return nil, err
			}
			why := strings.Join(strings.Fields(err.Error()), " ")
			fmt.Fprintf(os.Stderr, "no Kafka variants, set KAFKA_BROKERS or let the broker start: %s\n", why)
			return nil, nil
		}
		t.own, t.broker = own, own.Addr()
	}
	for size := range sizes {
		if err := t.fill(ctx, size); err != nil {
			t.close()
			return nil, fmt.Errorf("topic of records of %d bytes: %w", size, err)
		}
	}
	return t, nil
}

func (t *topics) close() {
	if t == nil {
		return
	}
	if t.client != nil {
		_, _ = kadm.NewClient(t.client).DeleteTopics(context.Background(), t.filled...)
		t.client.Close()
	}
	if t.own != nil {
		_ = t.own.Stop()
	}
}

// name of the topic for a size, of this process.
func (t *topics) name(size int) string { return fmt.Sprintf("bench-%d-%d", os.Getpid(), size) }

// fill creates a topic with orders that are padded to a size.
func (t *topics) fill(ctx context.Context, size int) (err error) {
	if t.client == nil {
		t.client, err = kgo.NewClient(kgo.SeedBrokers(strings.Split(t.broker, ",")...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.ProducerLinger(5*time.Millisecond), kgo.MaxBufferedRecords(50_000))
		if err != nil {
			return err
		}
	}
	r, err := kadm.NewClient(t.client).CreateTopic(ctx, partitions, -1, nil, t.name(size))
	if err == nil {
		err = r.Err
	}
	if err != nil {
		return err
	}
	t.filled = append(t.filled, t.name(size))
	failed := make(chan error, 1)
	err = eachOrder(t.events, t.keys, t.perKey, func(i int, order []byte) error {
		record := &kgo.Record{Topic: t.name(size), Partition: int32(i % partitions), Value: padded(order, size, uint64(i))}
		t.client.Produce(ctx, record, func(_ *kgo.Record, err error) {
			if err != nil {
				select {
				case failed <- err:
				default:
				}
			}
		})
		return nil
	})
	if err == nil {
		err = t.client.Flush(ctx)
	}
	select {
	case err = <-failed:
	default:
	}
	return err
}

// padded adds a field of letters, so that a record has about a size and does not
// compress to nothing.
func padded(order []byte, size int, seed uint64) []byte {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	out := make([]byte, 0, size)
	out = append(out, order[:len(order)-1]...)
	out = append(out, `,"note":"`...)
	rng := rand.New(rand.NewPCG(seed, 1))
	for len(out) < size-2 {
		for bits, n := rng.Uint64(), 0; n < 10 && len(out) < size-2; bits, n = bits>>6, n+1 {
			out = append(out, letters[bits&63])
		}
	}
	return append(out, `"}`...)
}

// measure runs a variant until it has gone through its topic. The formation of a
// group is left out of its time.
func (t *topics) measure(ctx context.Context, v variant) (s sample, err error) {
	work, err := os.MkdirTemp(t.dir, "run-")
	if err != nil {
		return s, err
	}
	defer os.RemoveAll(work)
	t.runs++
	free, err := ports.Free(1)
	if err != nil {
		return s, err
	}
	address := ports.Local(free[0])
	config, err := v.fill(map[string]string{"Broker": t.broker, "Topic": t.name(v.size), "State": filepath.Join(work, "state.db"),
		"Group": fmt.Sprintf("%s-%d", t.name(v.size), t.runs), "HTTP": address})
	if err != nil {
		return s, err
	}
	path := filepath.Join(work, "config.yaml")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, t.binary, "run", path)
	var logs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &logs, &logs
	if err := cmd.Start(); err != nil {
		return s, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	took, err := t.watch(ctx, v, address, ended)
	if err != nil {
		cancel()
		<-ended
		return s, fmt.Errorf("%w: %s", err, logs.Bytes())
	}
	_ = cmd.Process.Signal(os.Interrupt)
	if err := <-ended; err != nil || logs.Len() > 0 {
		return s, fmt.Errorf("it ended with %v and logged: %s", err, logs.Bytes())
	}
	return newSample(t.events, took, cmd.ProcessState), nil
}

// watch waits until a process has gone through the topic. It gives the time since
// the last look that saw no record.
func (t *topics) watch(ctx context.Context, v variant, address string, ended <-chan error) (took time.Duration, err error) {
	start, coming := time.Now(), false
	profiled := make(chan error, 1)
	for {
		select {
		case err := <-ended:
			return 0, fmt.Errorf("it ended by itself: %v", err)
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(20 * time.Millisecond): // between two looks
		}
		done := applied(ctx, address)
		if done == 0 {
			start = time.Now()
			continue
		}
		if !coming {
			coming = true
			go func() { profiled <- t.takeProfile(ctx, v, address) }()
		}
		if done >= t.events {
			took = time.Since(start)
			return took, <-profiled
		}
	}
}

// applied is how many records a process has gone through: those that an output
// took, and those that are applied to a window.
func applied(ctx context.Context, address string) (n int) {
	body, err := get(ctx, "http://"+address+"/metrics")
	if err != nil {
		return 0 // it has not started yet
	}
	var metrics map[string]json.RawMessage
	if json.Unmarshal(body, &metrics) != nil {
		return 0
	}
	for name, value := range metrics {
		var count int
		if (strings.HasPrefix(name, "output_sent{") || strings.HasPrefix(name, "windowed_rows_in{")) && json.Unmarshal(value, &count) == nil {
			n = max(n, count)
		}
	}
	return n
}

// takeProfile writes a profile of the processor where a folder is named.
func (t *topics) takeProfile(ctx context.Context, v variant, address string) error {
	if t.profile == "" {
		return nil
	}
	body, err := get(ctx, "http://"+address+"/debug/pprof/profile?seconds=1")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(t.profile, strings.ReplaceAll(v.name, "/", "-")+".pprof"), body, 0o600)
}

func get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}
