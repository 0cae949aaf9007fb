package kafka

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/processors/internal/socket"
)

// Fields of the connection, the same in the input and the output.
const (
	fieldBrokers   = "seed_brokers"
	fieldClientID  = "client_id"
	fieldTLS       = "tls"
	fieldMetadata  = "metadata_max_age"
	fieldOverhead  = "request_timeout_overhead"
	fieldIdle      = "conn_idle_timeout"
	fieldTCP       = "tcp"
	fieldConnect   = "connect_timeout"
	fieldKeepAlive = "keep_alive"
	fieldUser      = "tcp_user_timeout"
)

func connectionFields() []*service.ConfigField {
	return []*service.ConfigField{
		service.NewStringListField(fieldBrokers).
			Description("Brokers to connect to first, each `host:port`; the port is 9092 by default. An item may hold several with commas between them.").
			Example([]string{"localhost:9092"}).Example([]string{"foo:9092,bar:9092"}),
		service.NewStringField(fieldClientID).Default("redpanda-connect").Advanced().
			Description("How this client names itself to the brokers."),
		service.NewTLSToggledField(fieldTLS),
		saslField(),
		service.NewDurationField(fieldMetadata).Default("1m").Advanced().
			Description("How long what is known of topics and partitions may be used before it is asked for again. New topics of a pattern are found that late."),
		service.NewDurationField(fieldOverhead).Default("10s").Advanced().
			Description("How much longer than a request's own time limit its answer is waited for."),
		service.NewDurationField(fieldIdle).Default("20s").Advanced().
			Description("After which a connection that is not used is closed."),
		service.NewObjectField(fieldTCP,
			service.NewDurationField(fieldConnect).Default("0s").Description("How long to wait for a connection. `0s` is no limit of our own."),
			service.NewObjectField(fieldKeepAlive,
				service.NewDurationField("idle").Default("15s").Description("How long a connection is idle before the first probe. A negative value turns probes off."),
				service.NewDurationField("interval").Default("15s").Description("Between probes."),
				service.NewIntField("count").Default(9).Description("How many probes may stay without an answer."),
			).Advanced().Description("TCP keep-alive probes.").Optional(),
			service.NewDurationField(fieldUser).Default("0s").Advanced().Description("How long sent data may stay unacknowledged before the connection is closed (Linux). `0s` is the system's default."),
		).Advanced().Description("The TCP connections.").Optional(),
	}
}

// connection is where and how to connect.
type connection struct {
	brokers []string
	user    string // of sasl, "" for none
	options []kgo.Opt
}

// parseConnection reads the fields of the connection.
func parseConnection(conf *service.ParsedConfig) (c connection, err error) {
	list, err := conf.FieldStringList(fieldBrokers)
	if err != nil {
		return c, err
	}
	if c.brokers = splitList(list); len(c.brokers) == 0 {
		return c, fmt.Errorf("%s %w: give at least one host:port", fieldBrokers, errNothing)
	}
	for _, broker := range c.brokers {
		if err := checkBroker(broker); err != nil {
			return c, err
		}
	}
	id, err := conf.FieldString(fieldClientID)
	if err != nil {
		return c, err
	}
	age, err := parseDuration(conf, time.Millisecond, fieldMetadata)
	if err != nil {
		return c, err
	}
	overhead, err := parseDuration(conf, time.Millisecond, fieldOverhead)
	if err != nil {
		return c, err
	}
	idle, err := parseDuration(conf, time.Millisecond, fieldIdle)
	if err != nil {
		return c, err
	}
	c.options = append(c.options, kgo.SeedBrokers(c.brokers...), kgo.ClientID(id), kgo.DisableClientMetrics(),
		kgo.MetadataMaxAge(age), kgo.MetadataMinAge(min(age, metadataMinAge)), kgo.RequestTimeoutOverhead(overhead), kgo.ConnIdleTimeout(idle))
	dialer, err := parseTCP(conf)
	if err != nil {
		return c, err
	}
	network, err := parseTLS(conf, dialer)
	if err != nil {
		return c, err
	}
	c.options = append(c.options, network)
	mechanisms, user, err := parseSASL(conf)
	if err != nil {
		return c, err
	}
	c.user = user
	if len(mechanisms) > 0 {
		c.options = append(c.options, kgo.SASL(mechanisms...))
	}
	return c, nil
}

// checkBroker finds what cannot be an address. What else is wrong with one, dialling
// finds out.
func checkBroker(broker string) error {
	_, port, err := net.SplitHostPort(broker)
	n, bad := strconv.ParseUint(port, 10, 16)
	switch {
	case strings.Contains(broker, "://"):
		return fmt.Errorf("%s: %q is a URL: write host:port, such as localhost:9092, and what it says of encryption and users under %s and %s", fieldBrokers, broker, fieldTLS, fieldSASL)
	case err == nil && (bad != nil || n == 0):
		return fmt.Errorf("%s: %q has no port that can be: write host:port with a port from 1 to 65535, such as localhost:9092", fieldBrokers, broker)
	}
	return nil
}

// metadataMinAge is how soon metadata may be asked for again after it was found
// to be out of date.
const metadataMinAge = time.Second

// splitList gives the items of a list whose items may hold several, separated by
// commas. Empty ones are left out.
func splitList(list []string) (items []string) {
	for _, item := range list {
		for part := range strings.SplitSeq(item, ",") {
			if part = strings.TrimSpace(part); part != "" {
				items = append(items, part)
			}
		}
	}
	return items
}

// parseTCP makes the dialer.
func parseTCP(conf *service.ParsedConfig) (*net.Dialer, error) {
	d := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 9}}
	if !conf.Contains(fieldTCP) {
		return d, nil
	}
	var err error
	if d.Timeout, err = parseDuration(conf, 0, fieldTCP, fieldConnect); err != nil {
		return nil, err
	}
	user, err := parseDuration(conf, 0, fieldTCP, fieldUser)
	if err != nil {
		return nil, err
	}
	d.Control = socket.UserTimeout(user)
	if !conf.Contains(fieldTCP, fieldKeepAlive) {
		return d, nil
	}
	keep := &d.KeepAliveConfig
	if keep.Idle, err = conf.FieldDuration(fieldTCP, fieldKeepAlive, "idle"); err != nil {
		return nil, err
	}
	if keep.Interval, err = conf.FieldDuration(fieldTCP, fieldKeepAlive, "interval"); err != nil {
		return nil, err
	}
	if keep.Count, err = conf.FieldInt(fieldTCP, fieldKeepAlive, "count"); err != nil {
		return nil, err
	}
	if keep.Idle < 0 {
		d.KeepAliveConfig = net.KeepAliveConfig{}
		d.KeepAlive = -1
	}
	return d, nil
}

// named says which brokers an error is about, and as whom they were asked.
func (c connection) named(err error) error {
	as := ""
	if c.user != "" {
		as = fmt.Sprintf(", %s %s %q", fieldSASL, fieldUsername, c.user)
	}
	return fmt.Errorf("%s %s%s: %w", fieldBrokers, strings.Join(c.brokers, ","), as, explain(err))
}
