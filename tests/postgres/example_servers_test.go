//go:build servers

package postgres

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/connect-windowed/connect-windowed/tests/kafka/broker"
	"github.com/connect-windowed/connect-windowed/tests/life"
)

// shop is what customers did: messages by their topic, and what the table must say.
type shop struct {
	orders, payments []*kgo.Record
	rows             []string
}

const (
	orderPartitions   = 3
	paymentPartitions = 2
)

// trade makes up n orders, a second apart. Of three two are paid within a quarter of
// an hour, some of them in two instalments.
func trade(rnd *rand.Rand, n int) (s shop) {
	begin := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	type payment struct {
		at time.Time
		id string
	}
	var payments []payment
	for i := range n {
		at, id := begin.Add(time.Duration(i)*time.Second), fmt.Sprintf("A-%d", i)
		s.orders = append(s.orders, &kgo.Record{Topic: "orders", Partition: int32(i % orderPartitions), Key: []byte(id),
			Value: fmt.Appendf(nil, `{"id":%q,"at":%q,"customer":"c%d","amount":%d.10}`, id, at.Format(time.RFC3339), i%7, i)})
		parts := rnd.IntN(3)
		if parts == 0 {
			s.rows = append(s.rows, id+"|false|<nil>")
		}
		for p := range parts {
			paid := at.Add(time.Duration(rnd.IntN(890)-5) * time.Second)
			payments = append(payments, payment{paid, id})
			s.rows = append(s.rows, fmt.Sprintf("%s|true|%s", id, paid.Format(time.RFC3339)))
			_ = p
		}
	}
	slices.SortFunc(payments, func(a, b payment) int { return a.at.Compare(b.at) })
	for i, p := range payments {
		s.payments = append(s.payments, &kgo.Record{Topic: "payments", Partition: int32(i % paymentPartitions), Key: []byte(p.id),
			Value: fmt.Appendf(nil, `{"order_id":%q,"at":%q,"method":"card","amount":1}`, p.id, p.at.Format(time.RFC3339))})
	}
	later := begin.Add(time.Duration(n)*time.Second + 2*time.Hour).Format(time.RFC3339) // ends every wait
	for p := range orderPartitions {
		s.orders = append(s.orders, &kgo.Record{Topic: "orders", Partition: int32(p), Value: fmt.Appendf(nil, `{"id":"close-%d","at":%q}`, p, later)})
	}
	for p := range paymentPartitions {
		s.payments = append(s.payments, &kgo.Record{Topic: "payments", Partition: int32(p), Value: fmt.Appendf(nil, `{"order_id":"none","at":%q}`, later)})
	}
	slices.Sort(s.rows)
	return s
}

// The example from Kafka to PostgreSQL as users run it, killed now and then, the
// server crashed too: each pair and each unpaid order stands in the table once.
func TestKafkaToPostgres(t *testing.T) {
	server, to := newServer(t)
	kafka, err := broker.StartReal(filepath.Join(t.TempDir(), "kafka"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = kafka.Stop() })
	client, err := kgo.NewClient(kgo.SeedBrokers(kafka.Addr()), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	for topic, partitions := range map[string]int32{"orders": orderPartitions, "payments": paymentPartitions} {
		made, err := kadm.NewClient(client).CreateTopic(t.Context(), partitions, 1, nil, topic)
		require.NoError(t, err)
		require.NoError(t, made.Err)
	}
	rnd := rand.New(rand.NewPCG(life.Seed(t), 0))
	s := trade(rnd, 3000)
	send := func(records []*kgo.Record) {
		require.NoError(t, client.ProduceSync(t.Context(), records...).FirstErr())
	}
	half := len(s.payments) / 2
	send(s.orders[:1500])
	send(s.payments[:half])
	send([]*kgo.Record{{Topic: "orders", Value: []byte(`{"id":"B-1","at":"tomorrow"}`)}})

	dir := t.TempDir()
	text, err := os.ReadFile("../../config/examples/kafka_to_postgres.yaml")
	require.NoError(t, err)
	j := &example{dir: dir, config: string(text) + "\nhttp: { enabled: false }\n",
		env: []string{"KAFKA_BROKERS=" + kafka.Addr(), "POSTGRES_DSN=" + server.DSN, "STATE=" + filepath.Join(dir, "state.db")}}
	kills := 0
	for ; kills < 5; kills++ {
		j.start(t).kill(time.Duration(500+rnd.IntN(2500)) * time.Millisecond)
	}
	p := j.start(t)
	send(s.orders[1500:])
	send(s.payments[half:])
	require.NoError(t, server.Restart())
	read := func() []string { return joined(t, to.read) }
	deadline := time.Now().Add(4 * time.Minute)
	for len(read()) < len(s.rows) {
		require.True(t, time.Now().Before(deadline), "%d of %d rows\n%s", len(read()), len(s.rows), p.Log.String())
		select {
		case <-p.Exited:
			require.Fail(t, "the process ended", p.Log.String())
		case <-time.After(100 * time.Millisecond):
		}
	}
	p.term(t)
	require.Equal(t, s.rows, read())
	var topic, reason string
	require.NoError(t, to.read.QueryRow("SELECT topic, reason FROM rejected_messages").Scan(&topic, &reason))
	require.Equal(t, "orders", topic)
	require.Contains(t, reason, "tomorrow")
}

// joined is what the table of the example holds. The server may be away.
func joined(t testing.TB, read *sql.DB) (lines []string) {
	found, err := read.Query("SELECT order_id, paid, paid_at FROM order_payments")
	if err != nil {
		t.Logf("not yet: %v", err)
		return nil
	}
	defer found.Close()
	for found.Next() {
		var id string
		var paid bool
		var at sql.NullTime
		require.NoError(t, found.Scan(&id, &paid, &at))
		line := fmt.Sprintf("%s|%v|<nil>", id, paid)
		if at.Valid {
			line = fmt.Sprintf("%s|%v|%s", id, paid, at.Time.UTC().Format(time.RFC3339))
		}
		if !strings.HasPrefix(id, "close-") {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}

// term asks the process to stop.
func (p *process) term(t testing.TB) {
	t.Helper()
	p.Terminate()
	p.ended(t)
}
