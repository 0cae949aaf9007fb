package kafka

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// remedies say what to do about errors of the brokers and the client.
var remedies = []struct {
	err    error
	remedy string
}{
	{kerr.SaslAuthenticationFailed, "check mechanism, username and password under sasl"},
	{kerr.UnsupportedSaslMechanism, "the brokers do not offer this mechanism: change it under sasl"},
	{kerr.IllegalSaslState, "this listener of the brokers wants no sasl, or another mechanism: leave sasl out, correct mechanism, or name the port of another listener in seed_brokers"},
	{kerr.TopicAuthorizationFailed, "the user under sasl must be allowed to read (input) or write (output) and to describe the topic"},
	{kerr.GroupAuthorizationFailed, "the user under sasl must be allowed to read consumer_group"},
	{kerr.ClusterAuthorizationFailed, "the user under sasl must be allowed to write idempotently, or set idempotent_write: false"},
	{kerr.UnknownTopicOrPartition, "create the topic, or correct its name"},
	{kerr.OffsetOutOfRange, "the topic has dropped what consumer_group has committed, and start_offset: committed goes nowhere else: reset the offsets of the group, or use earliest or latest"},
	{kerr.UnknownTopicID, "the topic was deleted or created again"},
	{kerr.InvalidTopicException, "the name is not allowed for a topic: use letters, digits, '.', '_' and '-', at most 249"},
	{kerr.MessageTooLarge, "raise max_message_bytes here and max.message.bytes of the topic, or send smaller messages"},
	{kerr.RecordListTooLarge, "lower max_message_bytes here or raise segment.bytes of the topic"},
	{kerr.InvalidGroupID, "correct consumer_group"},
	{kerr.InvalidSessionTimeout, "the brokers do not allow this session_timeout: see group.min.session.timeout.ms and group.max.session.timeout.ms there"},
	{kerr.FencedInstanceID, "another member of consumer_group has the same instance_id: give each its own"},
	{kerr.InconsistentGroupProtocol, "the other members of consumer_group balance in another way: use another consumer_group"},
	{kerr.GroupMaxSizeReached, "consumer_group has no room for another member"},
	{kerr.UnsupportedCompressionType, "the brokers or the topic do not take this compression: change compression"},
	{kerr.CorruptMessage, "the brokers or the network damage data"},
	{kerr.InvalidRequiredAcks, "change acks"},
	{kerr.NotEnoughReplicas, "too few replicas are in sync for acks: all: bring brokers back, or lower min.insync.replicas of the topic"},
	{kerr.InvalidTimestamp, "the topic does not take this timestamp: see timestamp_ms, and message.timestamp.after.max.ms of the topic"},
	{kerr.PolicyViolation, "a policy of the brokers forbids it"},
	{kerr.UnsupportedVersion, "the brokers are too old for this"},
	{kgo.ErrRecordTimeout, "raise record_delivery_timeout, or look after the brokers"},
	{kgo.ErrRecordRetries, "raise record_retries, or look after the brokers"},
}

// unreached adds to the error of a connection what to do about it. The address of a
// broker that has a number is the one that the brokers give for it.
func unreached(meta kgo.BrokerMetadata, err error) error {
	var op *net.OpError
	if meta.NodeID >= 0 && errors.As(err, &op) && op.Op == "dial" {
		return fmt.Errorf("%w (is this broker up? Its address is not from seed_brokers, the brokers give it: advertised.listeners there must name what can be reached from here)", err)
	}
	return explain(err)
}

// explain adds to an error what to do about it, where that is known.
func explain(err error) error {
	if err == nil {
		return nil
	}
	for _, r := range remedies {
		if errors.Is(err, r.err) {
			return fmt.Errorf("%w (%s)", err, r.remedy)
		}
	}
	var dns *net.DNSError
	var eof *kgo.ErrFirstReadEOF
	var op *net.OpError
	text := err.Error()
	hungUp := errors.As(err, &eof) || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || strings.Contains(text, "broker connection has died")
	switch {
	case errors.As(err, &dns):
		return fmt.Errorf("%w (no such host: correct seed_brokers)", err)
	case hungUp:
		return fmt.Errorf("%w (the broker hangs up: check sasl, tls and the port in seed_brokers)", err)
	case strings.Contains(text, "no prior committed offset"):
		return fmt.Errorf("%w (start_offset: committed consumes only what consumer_group has committed before: use earliest or latest)", err)
	case strings.Contains(text, "invalid record partitioning choice"):
		return fmt.Errorf("%w (the topic has no such partition: correct partition, or use another partitioner)", err)
	case errors.As(err, &op) && op.Op == "dial":
		return fmt.Errorf("%w (is the broker up, and are host and port in seed_brokers right?)", err)
	}
	return err
}
