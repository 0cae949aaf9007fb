package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/redpanda-data/benthos/v4/public/service"
)

const (
	fieldSASL      = "sasl"
	fieldMechanism = "mechanism"
	fieldUsername  = "username"
	fieldPassword  = "password"
)

// mechanisms are the ways to authenticate; nil stands for none.
var mechanisms = map[string]func(user, password string) sasl.Mechanism{
	"none":  nil,
	"PLAIN": func(u, p string) sasl.Mechanism { return plain.Auth{User: u, Pass: p}.AsMechanism() },
	"SCRAM-SHA-256": func(u, p string) sasl.Mechanism {
		return scram.Auth{User: u, Pass: p}.AsSha256Mechanism()
	},
	"SCRAM-SHA-512": func(u, p string) sasl.Mechanism {
		return scram.Auth{User: u, Pass: p}.AsSha512Mechanism()
	},
}

var mechanismNames = []string{"none", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}

func saslField() *service.ConfigField {
	return service.NewObjectListField(fieldSASL,
		choiceField(fieldMechanism, mechanismNames...).Description("How to authenticate."),
		service.NewStringField(fieldUsername).Default("").Description("The user."),
		service.NewStringField(fieldPassword).Default("").Secret().Description("The password."),
	).Advanced().Optional().Description("Ways to authenticate with SASL, tried in this order.").
		Example([]any{map[string]any{"mechanism": "SCRAM-SHA-512", "username": "foo", "password": "bar"}})
}

// parseSASL gives the ways to authenticate, and the user of the first.
func parseSASL(conf *service.ParsedConfig) (found []sasl.Mechanism, first string, err error) {
	if !conf.Contains(fieldSASL) {
		return nil, "", nil
	}
	list, err := conf.FieldObjectList(fieldSASL)
	if err != nil {
		return nil, "", err
	}
	for i, c := range list {
		word, err := parseChoice(c, fieldMechanism, mechanismNames...)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %d: %w", fieldSASL, i, err)
		}
		user, err := c.FieldString(fieldUsername)
		if err != nil {
			return nil, "", err
		}
		password, err := c.FieldString(fieldPassword)
		if err != nil {
			return nil, "", err
		}
		make := mechanisms[word]
		switch {
		case make == nil:
			continue
		case user == "" || password == "":
			return nil, "", fmt.Errorf("%s: %d: %s needs a %s and a %s", fieldSASL, i, word, fieldUsername, fieldPassword)
		}
		if found = append(found, make(user, password)); first == "" {
			first = user
		}
	}
	return found, first, nil
}

// parseTLS gives the way to the brokers, plain or over TLS.
func parseTLS(conf *service.ParsedConfig, dialer *net.Dialer) (kgo.Opt, error) {
	config, enabled, err := conf.FieldTLSToggled(fieldTLS)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", fieldTLS, err)
	}
	if !enabled {
		return kgo.Dialer(dialer.DialContext), nil
	}
	return kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		return dialTLS(ctx, dialer, config, network, address)
	}), nil
}

func dialTLS(ctx context.Context, dialer *net.Dialer, config *tls.Config, network, address string) (net.Conn, error) {
	c := config.Clone()
	if c.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is no host:port: %w", fieldBrokers, address, err)
		}
		c.ServerName = host
	}
	conn, err := (&tls.Dialer{NetDialer: dialer, Config: c}).DialContext(ctx, network, address)
	var unknown *tls.CertificateVerificationError
	if errors.As(err, &unknown) {
		return nil, fmt.Errorf("%s: the certificate of %s is not trusted (name its authority in root_cas or root_cas_file): %w", fieldTLS, address, err)
	}
	return conn, err
}
