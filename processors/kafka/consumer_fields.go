package kafka

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/redpanda-data/benthos/v4/public/service"
)

const (
	fieldTopics     = "topics"
	fieldRegexp     = "regexp_topics"
	fieldInclude    = "regexp_topics_include"
	fieldExclude    = "regexp_topics_exclude"
	fieldGroup      = "consumer_group"
	fieldStart      = "start_offset"
	fieldOldest     = "start_from_oldest"
	fieldRack       = "rack_id"
	fieldInstance   = "instance_id"
	fieldRebalance  = "rebalance_timeout"
	fieldSession    = "session_timeout"
	fieldHeartbeat  = "heartbeat_interval"
	fieldFetchMax   = "fetch_max_bytes"
	fieldFetchMin   = "fetch_min_bytes"
	fieldFetchPart  = "fetch_max_partition_bytes"
	fieldFetchWait  = "fetch_max_wait"
	fieldIsolation  = "transaction_isolation_level"
	fieldCommit     = "commit_period"
	fieldLagRefresh = "topic_lag_refresh_period"
	fieldBuffer     = "partition_buffer_bytes"
	fieldYield      = "max_yield_batch_bytes"
)

func consumerFields() []*service.ConfigField {
	return []*service.ConfigField{
		service.NewStringListField(fieldTopics).Optional().
			Description("Topics to consume, each `topic`, or explicit partitions without a consumer group: `topic:0`, `topic:0-5`, or with the offset to start at `topic:0:1234`. An item may hold several with commas between them.").
			Example([]string{"foo", "bar"}).Example([]string{"foo:0,foo:1", "bar:3-5", "baz:0:1234"}),
		service.NewBoolField(fieldRegexp).Default(false).Deprecated().
			Description("Take `topics` as regular expressions. Use `regexp_topics_include`."),
		service.NewStringListField(fieldInclude).Optional().Advanced().
			Description("Regular expressions of topics to consume. New topics are found within `metadata_max_age`.").Example([]string{"logs_.*"}),
		service.NewStringListField(fieldExclude).Optional().Advanced().
			Description("Regular expressions of topics that are left out although they are included."),
		service.NewStringField(fieldGroup).Optional().
			Description("The consumer group. It shares the partitions among its members, and its offsets say where a restart goes on. Required unless partitions are explicit, which go without."),
		choiceField(fieldStart, "earliest", "latest", "committed").Default("earliest").Advanced().
			Description("Where to begin with a partition that the group has no offset of: at its start or its end; with `committed` such a partition is not consumed."),
		service.NewBoolField(fieldOldest).Default(true).Deprecated().
			Description("False is the same as `start_offset: latest`."),
		service.NewStringField(fieldRack).Default("").Advanced().Description("Where this client is, so that brokers may have a near replica serve it."),
		service.NewStringField(fieldInstance).Default("").Advanced().Description("Makes this a static member of the group under this name: a restart within `session_timeout` keeps its partitions."),
		service.NewDurationField(fieldRebalance).Default("45s").Advanced().Description("How long members may take to give up partitions and join again."),
		service.NewDurationField(fieldSession).Default("1m").Advanced().Description("After which a member without heartbeats is taken as gone."),
		service.NewDurationField(fieldHeartbeat).Default("3s").Advanced().Description("Between heartbeats, at most a third of `session_timeout`."),
		sizeField(fieldFetchMax, "The most that a broker sends in one answer.", "50MiB"),
		sizeField(fieldFetchMin, "What a broker waits for before it answers, for at most `fetch_max_wait`.", "1B"),
		sizeField(fieldFetchPart, "The most of one partition in one answer.", "1MiB"),
		service.NewDurationField(fieldFetchWait).Default("5s").Advanced().Description("How long a broker waits for `fetch_min_bytes`."),
		choiceField(fieldIsolation, "read_uncommitted", "read_committed").Default("read_uncommitted").Advanced().
			Description("Whether records of transactions that are open or were aborted are seen."),
		service.NewDurationField(fieldCommit).Default("5s").Advanced().Description("Between commits of the offsets of acknowledged messages."),
		service.NewDurationField(fieldLagRefresh).Default("5s").Advanced().Description("Between updates of the metric `redpanda_lag`."),
		sizeField(fieldBuffer, "How much of a partition may wait in memory to be handed out.", "1MB"),
		sizeField(fieldYield, "The size of a batch, at most `partition_buffer_bytes`. Directly inside of the `windowed` input batches may be larger.", "32KB"),
		service.NewAutoRetryNacksToggleField(),
	}
}

// consumer is what to consume and how.
type consumer struct {
	connection
	group     string
	list      topicList
	regexps   []string // of topics, in the place of list.topics
	start     kgo.Offset
	rebalance time.Duration
	session   time.Duration // 0: there is no group
	lag       time.Duration
	shelf     shelfConfig
	options   []kgo.Opt
}

func parseConsumer(conf *service.ParsedConfig) (c consumer, err error) {
	if c.connection, err = parseConnection(conf); err != nil {
		return c, err
	}
	c.options = c.connection.options
	for _, parse := range []func(*service.ParsedConfig) error{c.parseTopics, c.parseStart, c.parseGroup, c.parseFetch, c.parseShelf} {
		if err := parse(conf); err != nil {
			return c, err
		}
	}
	return c, kgo.ValidateOpts(append(c.options[:len(c.options):len(c.options)], c.begin(resume{})...)...)
}

var (
	errNoTopics = fmt.Errorf("topics %w: name topics, or patterns in regexp_topics_include", errNothing)
	errNoGroup  = fmt.Errorf("consumer_group %w: name one, or give explicit partitions in topics (topic:partition)", errNothing)
	errGrouped  = errors.New("consumer_group: a group shares out whole topics: leave it out, or name topics without partitions")
)

// parseTopics reads what to consume.
func (c *consumer) parseTopics(conf *service.ParsedConfig) error {
	var list, include, exclude []string
	for name, into := range map[string]*[]string{fieldTopics: &list, fieldInclude: &include, fieldExclude: &exclude} {
		if !conf.Contains(name) {
			continue
		}
		var err error
		if *into, err = conf.FieldStringList(name); err != nil {
			return err
		}
	}
	patterns, err := conf.FieldBool(fieldRegexp)
	if err != nil {
		return err
	}
	switch {
	case patterns && len(include) > 0:
		return fmt.Errorf("%s: goes without the deprecated %s: leave that out", fieldInclude, fieldRegexp)
	case patterns:
		include, list = splitList(list), nil
	case len(include) > 0 && len(list) > 0:
		return fmt.Errorf("%s: goes without %s: write topics as patterns too", fieldInclude, fieldTopics)
	case len(exclude) > 0 && len(include) == 0:
		return fmt.Errorf("%s: goes with %s only", fieldExclude, fieldInclude)
	}
	if err := compile(fieldInclude, include); err != nil {
		return err
	}
	if err := compile(fieldExclude, exclude); err != nil {
		return err
	}
	if c.list, err = parseTopics(list); err != nil {
		return fmt.Errorf("%s: %w", fieldTopics, err)
	}
	if c.regexps = include; len(include) > 0 {
		c.options = append(c.options, kgo.ConsumeRegex(), kgo.ConsumeTopics(include...))
	}
	if len(exclude) > 0 {
		c.options = append(c.options, kgo.ConsumeExcludeTopics(exclude...))
	}
	if len(include)+len(c.list.topics)+len(c.list.partitions) == 0 {
		return errNoTopics
	}
	return nil
}

func compile(field string, patterns []string) error {
	for _, p := range patterns {
		if _, err := regexp.Compile(p); err != nil {
			return fmt.Errorf("%s: %q is not a regular expression (RE2): %w", field, p, err)
		}
	}
	return nil
}

// parseStart reads where to begin. Where a broker has lost what was consumed, the
// client goes back rather than forward: the host recognises what it knows.
func (c *consumer) parseStart(conf *service.ParsedConfig) error {
	word, err := parseChoice(conf, fieldStart, "earliest", "latest", "committed")
	if err != nil {
		return err
	}
	oldest, err := conf.FieldBool(fieldOldest)
	if err != nil {
		return err
	}
	if !oldest && word == "earliest" {
		word = "latest"
	}
	switch word {
	case "earliest":
		c.start = kgo.NewOffset().AtStart()
		c.options = append(c.options, kgo.ConsumeResetOffset(c.start))
	case "latest":
		c.start = kgo.NewOffset().AtEnd()
	case "committed":
		c.start = kgo.NewOffset().AtCommitted()
	}
	c.options = append(c.options, kgo.ConsumeStartOffset(c.start))
	if len(c.list.topics) > 0 {
		c.options = append(c.options, kgo.ConsumeTopics(c.list.topics...))
	}
	if word == "committed" && len(c.list.partitions) > 0 {
		return fmt.Errorf("%s: committed needs a %s, which explicit partitions go without: use earliest or latest", fieldStart, fieldGroup)
	}
	return nil
}

// parseGroup reads the consumer group and how its members behave.
func (c *consumer) parseGroup(conf *service.ParsedConfig) (err error) {
	if conf.Contains(fieldGroup) {
		if c.group, err = conf.FieldString(fieldGroup); err != nil {
			return err
		}
	}
	explicit := len(c.list.partitions) > 0
	switch {
	case c.group == "" && !explicit:
		return errNoGroup
	case c.group != "" && explicit:
		return errGrouped
	}
	if c.rebalance, err = parseDuration(conf, 100*time.Millisecond, fieldRebalance); err != nil {
		return err
	}
	session, err := parseDuration(conf, 100*time.Millisecond, fieldSession)
	if err != nil {
		return err
	}
	heartbeat, err := parseDuration(conf, time.Millisecond, fieldHeartbeat)
	if err != nil {
		return err
	}
	if heartbeat >= session {
		return fmt.Errorf("%s: %s must be below %s, which is %s", fieldHeartbeat, heartbeat, fieldSession, session)
	}
	commit, err := parseDuration(conf, 100*time.Millisecond, fieldCommit)
	if err != nil {
		return err
	}
	instance, err := conf.FieldString(fieldInstance)
	if err != nil || explicit {
		return err
	}
	c.options = append(c.options, kgo.ConsumerGroup(c.group), kgo.RebalanceTimeout(c.rebalance), kgo.SessionTimeout(session),
		kgo.HeartbeatInterval(heartbeat), kgo.AutoCommitMarks(), kgo.AutoCommitInterval(commit), kgo.BlockRebalanceOnPoll())
	c.session = session
	if instance != "" {
		c.options = append(c.options, kgo.InstanceID(instance))
	}
	return nil
}

// parseFetch reads how much is fetched at once.
func (c *consumer) parseFetch(conf *service.ParsedConfig) error {
	sizes := map[string]int32{fieldFetchMax: 0, fieldFetchMin: 0, fieldFetchPart: 0}
	for name := range sizes {
		n, err := parseSize(conf, 1, name)
		if err != nil {
			return err
		}
		sizes[name] = n
	}
	wait, err := parseDuration(conf, time.Millisecond, fieldFetchWait)
	if err != nil {
		return err
	}
	level, err := parseChoice(conf, fieldIsolation, "read_uncommitted", "read_committed")
	if err != nil {
		return err
	}
	rack, err := conf.FieldString(fieldRack)
	if err != nil {
		return err
	}
	isolation := kgo.ReadUncommitted()
	if level == "read_committed" {
		isolation = kgo.ReadCommitted()
	}
	c.options = append(c.options, kgo.FetchMaxBytes(sizes[fieldFetchMax]), kgo.FetchMinBytes(sizes[fieldFetchMin]),
		kgo.FetchMaxPartitionBytes(sizes[fieldFetchPart]), kgo.FetchMaxWait(wait), kgo.FetchIsolationLevel(isolation), kgo.Rack(rack))
	if big := sizes[fieldFetchMax]; big > 80<<20 {
		c.options = append(c.options, kgo.BrokerMaxReadBytes(min(big, 1<<29)*2))
	}
	return nil
}

// parseShelf reads how much waits and how it is handed out.
func (c *consumer) parseShelf(conf *service.ParsedConfig) error {
	buffer, err := parseSize(conf, 1, fieldBuffer)
	if err != nil {
		return err
	}
	yield, err := parseSize(conf, 1, fieldYield)
	if err != nil {
		return err
	}
	if yield > buffer {
		return fmt.Errorf("%s: %d bytes are more than %s, which is %d: lower the one or raise the other", fieldYield, yield, fieldBuffer, buffer)
	}
	replay, err := conf.FieldBool(service.AutoRetryNacksToggleFieldName)
	if err != nil {
		return err
	}
	if c.lag, err = parseDuration(conf, time.Millisecond, fieldLagRefresh); err != nil {
		return err
	}
	c.shelf = shelfConfig{buffer: int(buffer), yield: int(yield), replay: replay, direct: c.group == ""}
	return nil
}
