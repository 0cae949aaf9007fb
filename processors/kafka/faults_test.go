package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/redpanda-data/benthos/v4/public/service"
)

func TestNoBroker(t *testing.T) {
	conf, err := inputSpec().ParseYAML("seed_brokers: [ 'localhost:1' ]\ntopics: [ a ]\nconsumer_group: g", nil)
	require.NoError(t, err)
	c, err := parseConsumer(conf)
	require.NoError(t, err)
	r := newReader(c, conf.Resources())
	listen(r)
	err = r.Connect(context.Background())
	require.ErrorContains(t, err, "seed_brokers localhost:1")
	require.ErrorContains(t, err, "is the broker up")
	var wait *service.ErrBackOff
	require.ErrorAs(t, err, &wait)
	require.Equal(t, time.Second, wait.Wait)
	_, _, err = r.ReadBatch(context.Background())
	require.ErrorIs(t, err, service.ErrNotConnected)
	require.NoError(t, r.Close(context.Background()))
}

func TestPasswords(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "orders"), kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "ada", "right"))
	cl := client(t, c, kgo.SASL(scram.Auth{User: "ada", Pass: "right"}.AsSha256Mechanism()))
	produce(t, cl, "orders", 0, 0, 3)
	const fields = "topics: [ orders ]\nconsumer_group: g\nsasl: [ { mechanism: %s, username: ada, password: %s } ]"
	for mechanism, password := range map[string]string{"SCRAM-SHA-256": "wrong", "PLAIN": "right", "SCRAM-SHA-512": "right"} {
		r := newInput(t, c, fields, mechanism, password)
		said := listen(r)
		err := r.Connect(context.Background())
		require.ErrorContains(t, err, "sasl", mechanism)
		require.ErrorContains(t, err, `"ada"`, mechanism)
		require.NotContains(t, err.Error()+said.text(), password)
	}
	r := newInput(t, c, "topics: [ orders ]\nconsumer_group: g")
	listen(r)
	require.ErrorContains(t, r.Connect(context.Background()), "sasl")
	require.Equal(t, numbers(0, 3), drainAll(t, connect(t, newInput(t, c, fields, "SCRAM-SHA-256", "right")), 3))
}

// TestUnknownTopic has the other topics flow, says which is missing, and takes it in
// when it is there.
func TestUnknownTopic(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "orders"))
	cl := client(t, c)
	produce(t, cl, "orders", 0, 0, 3)
	r := newInput(t, c, "topics: [ orders, later ]\nconsumer_group: g\ntopic_lag_refresh_period: 50ms")
	said := listen(r)
	connect(t, r)
	require.Equal(t, numbers(0, 3), drainAll(t, r, 3))
	eventually(t, func() bool {
		return strings.Contains(said.text(), "topics: later") && strings.Contains(said.text(), "create the topic")
	}, "it says which topic is missing")
	_, err := kadm.NewClient(cl).CreateTopic(context.Background(), 1, 1, nil, "later")
	require.NoError(t, err)
	eventually(t, func() bool { // the client that produces has to hear of it
		return cl.ProduceSync(context.Background(), &kgo.Record{Topic: "later", Value: []byte("7")}).FirstErr() == nil
	}, "the topic is there")
	require.Equal(t, []string{"7"}, drainAll(t, r, 1))
	require.Equal(t, 1, strings.Count(said.text(), "later"), "said once, not all the time")
}

func TestNoPermission(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "orders"), kfake.EnableSASL(), kfake.EnableACLs(), kfake.User("SCRAM-SHA-256", "eve", "right",
		kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: "orders", Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: kmsg.ACLOperationRead, Allow: true}))
	r := newInput(t, c, "topics: [ orders, secret ]\nconsumer_group: g\ntopic_lag_refresh_period: 50ms\nsasl: [ { mechanism: SCRAM-SHA-256, username: eve, password: right } ]")
	said := listen(r)
	connect(t, r)
	eventually(t, func() bool { return strings.Contains(said.text(), "must be allowed to read consumer_group") }, said.text()+"the group")
	eventually(t, func() bool { return strings.Contains(said.text(), "topics: secret") }, "the topic that cannot be seen")
}

// TestCommitThatFails has a broker hang up on a commit.
func TestCommitThatFails(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "orders"))
	cl := client(t, c)
	produce(t, cl, "orders", 0, 0, 10)
	c.ControlKey(int16(kmsg.OffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
		return nil, errors.New("no"), true
	})
	r := newInput(t, c, "topics: [ orders ]\nconsumer_group: g\ncommit_period: 100ms")
	listen(r)
	connect(t, r)
	require.Equal(t, numbers(0, 10), drainAll(t, r, 10))
	eventually(t, func() bool { return committedAt(t, cl, "g", "orders", 0) == 10 }, "a later commit does it")
}

// TestCloseWithoutABroker wants a stop to end although nobody takes the commit.
func TestCloseWithoutABroker(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "orders"))
	cl := client(t, c)
	produce(t, cl, "orders", 0, 0, 10)
	r := newInput(t, c, "topics: [ orders ]\nconsumer_group: g")
	listen(r)
	require.Equal(t, numbers(0, 10), drainAll(t, connect(t, r), 10))
	cl.Close()
	c.Close()
	begin := time.Now()
	require.NoError(t, r.Close(context.Background()))
	require.Less(t, time.Since(begin), commitWait+leaveWait+5*time.Second)
	t.Log(time.Since(begin))
}

func TestMistakes(t *testing.T) {
	cases := []struct{ fields, want string }{
		{"topics: [ a ]", "consumer_group is missing"},
		{"topics: [ 'a:0' ]\nconsumer_group: g", "leave it out"},
		{"topics: []\nconsumer_group: g", "topics is missing"},
		{"consumer_group: g", "topics is missing"},
		{"topics: [ 'a,b:1' ]\nconsumer_group: g", "mixed"},
		{"topics: [ a ]\nregexp_topics_include: [ b ]\nconsumer_group: g", "write topics as patterns"},
		{"regexp_topics_include: [ '(' ]\nconsumer_group: g", `regexp_topics_include: "(" is not a regular expression`},
		{"regexp_topics_include: [ a ]\nregexp_topics_exclude: [ '[' ]\nconsumer_group: g", `regexp_topics_exclude: "["`},
		{"topics: [ '*' ]\nregexp_topics: true\nconsumer_group: g", "not a regular expression"},
		{"topics: [ a ]\nregexp_topics_exclude: [ a ]\nconsumer_group: g", "goes with regexp_topics_include only"},
		{"topics: [ a ]\nconsumer_group: g\nstart_offset: middle", "use earliest, latest, committed"},
		{"topics: [ 'a:0' ]\nstart_offset: committed", "use earliest or latest"},
		{"topics: [ a ]\nconsumer_group: g\nheartbeat_interval: 2m", "must be below session_timeout"},
		{"topics: [ a ]\nconsumer_group: g\nsession_timeout: 0s", "too short"},
		{"topics: [ a ]\nconsumer_group: g\nfetch_max_bytes: lots", "is not a size"},
		{"topics: [ a ]\nconsumer_group: g\nfetch_max_bytes: 3GiB", "out of range"},
		{"topics: [ a ]\nconsumer_group: g\nmax_yield_batch_bytes: 2MB", "partition_buffer_bytes"},
		{"topics: [ a ]\nconsumer_group: g\nsasl: [ { mechanism: OAUTHBEARER } ]", `mechanism: "OAUTHBEARER" is not supported`},
		{"topics: [ a ]\nconsumer_group: g\nsasl: [ { mechanism: PLAIN, username: u } ]", "needs a username and a password"},
		{"topics: [ a ]\nconsumer_group: g\ntransaction_isolation_level: serializable", "use read_uncommitted, read_committed"},
	}
	for _, c := range cases {
		conf, err := inputSpec().ParseYAML("seed_brokers: [ localhost ]\n"+c.fields, nil)
		require.NoError(t, err, c.fields)
		_, err = parseConsumer(conf)
		require.ErrorContains(t, err, c.want, c.fields)
	}
	for _, brokers := range []string{"[]", "[ '' ]", "[ ' , ' ]"} {
		conf, err := inputSpec().ParseYAML(fmt.Sprintf("seed_brokers: %s\ntopics: [ a ]\nconsumer_group: g", brokers), nil)
		require.NoError(t, err)
		_, err = parseConsumer(conf)
		require.ErrorContains(t, err, "seed_brokers is missing")
	}
}

// TestLint wants lint to say what a start says, once.
func TestLint(t *testing.T) {
	cases := []struct {
		config string
		want   []string
	}{
		{"input: { redpanda: { seed_brokers: [ a, 'b,c' ], topics: [ t ], consumer_group: g } }", nil},
		{"input: { redpanda: { seed_brokers: [ '${BROKERS}' ], topics: [ '${TOPIC}' ], consumer_group: '${GROUP}' } }", nil},
		{"input: { redpanda: { seed_brokers: [ a ], topics: [ t ] } }", []string{"consumer_group is missing"}},
		{"input: { redpanda: { seed_brokers: [ a ], topics: [ t ], consumer_group: g, unordered_processing: { enabled: true } } }", []string{"unordered_processing not recognised"}},
		{"input: { redpanda: { seed_brokers: [ a ], topics: [ t ], consumer_group: g, timely_nacks_maximum_wait: 1s } }", []string{"timely_nacks_maximum_wait not recognised"}},
		{"input: { redpanda: { topics: [ t ], consumer_group: g } }", []string{"seed_brokers is missing"}},
		{"input: { redpanda: { seed_brokers: [ 'a, kafka://b:9092' ], topics: [ t ], consumer_group: g } }", []string{`"kafka://b:9092" is a URL: write host:port`}},
		{"output: { redpanda: { seed_brokers: [ 'a:99999' ], topic: t } }", []string{`"a:99999" has no port that can be: write host:port with a port from 1 to 65535`}},
		{"output: { redpanda: { seed_brokers: [ '[::1]:9092', 'a:' ], topic: t } }", []string{`"a:" has no port that can be`}},
		{"input: { redpanda: { seed_brokers: [ a ], topics: [ t ], consumer_group: g, start_offset: middle } }", []string{"start_offset"}},
		{"input: { redpanda: { seed_brokers: [ a ], topics: [ t ], consumer_group: g, sasl: [ { mechanism: AWS_MSK_IAM } ] } }", []string{"AWS_MSK_IAM"}},
		{"output: { redpanda: { seed_brokers: [ a ], topic: t } }", nil},
		{"output: { redpanda: { seed_brokers: [ a ], topic: t, acks: leader } }", []string{"acks: leader does not go with idempotent_write"}},
		{"output: { redpanda: { seed_brokers: [ a ], topic: t, compression: rar } }", []string{"compression"}},
	}
	for _, c := range cases {
		lints, err := service.GlobalEnvironment().FullConfigSchema("", "").NewStreamConfigLinter().SetSkipEnvVarCheck(true).LintYAML([]byte(c.config))
		require.NoError(t, err)
		var said []string
		for _, l := range lints {
			said = append(said, l.Error())
		}
		require.Len(t, said, len(c.want), "%s: %q", c.config, said)
		for i, want := range c.want {
			require.Contains(t, said[i], want)
		}
	}
}

// TestAdvertisedAddress does not send anybody to seed_brokers who has put those
// right: the brokers name each other.
func TestAdvertisedAddress(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	require.ErrorContains(t, unreached(kgo.BrokerMetadata{NodeID: 1}, dial), "advertised.listeners")
	require.ErrorContains(t, unreached(kgo.BrokerMetadata{NodeID: 1}, &net.OpError{Op: "dial", Err: &net.DNSError{}}), "advertised.listeners")
	seed := unreached(kgo.BrokerMetadata{NodeID: -1 << 31}, dial)
	require.ErrorContains(t, seed, "seed_brokers")
	require.NotContains(t, seed.Error(), "advertised")
}
