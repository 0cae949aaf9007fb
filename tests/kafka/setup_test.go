package kafka

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/connect-windowed/connect-windowed/tests/life"
)

// account of a broker with passwords.
type login struct{ user, password string }

var admin, guest = login{"admin", "admin-secret"}, login{"guest", "guest-secret"}

func (l login) option() kgo.Opt {
	return kgo.SASL(plain.Auth{User: l.user, Pass: l.password}.AsMechanism())
}

// field is how a pipeline says who it is.
func (l login) field() string {
	return fmt.Sprintf(", sasl: [ { mechanism: PLAIN, username: %q, password: %q } ]", l.user, l.password)
}

// grant lets the guest do something.
func (c *cluster) grant(t *testing.T, b *kadm.ACLBuilder, operations ...kmsg.ACLOperation) {
	t.Helper()
	r, err := c.admin.CreateACLs(t.Context(), b.Allow("User:"+guest.user).AllowHosts("*").ResourcePatternType(kadm.ACLPatternLiteral).Operations(operations...))
	require.NoError(t, err)
	for _, result := range r {
		require.NoError(t, result.Err)
	}
}

// setups are what may be wrong around a pipeline: it says so, goes on trying, and
// nothing is lost when it is put right.
var setups = []struct {
	name    string
	spoil   func(t *testing.T, s *scenario)
	words   []string
	missing string // the permission that the guest has not got
	repair  func(t *testing.T, s *scenario)
}{
	{name: "no permission for the group", missing: "group", words: []string{"consumer_group", "GROUP_AUTHORIZATION_FAILED"}},
	{name: "no permission to read", missing: "orders", words: []string{"topics", "TOPIC_AUTHORIZATION_FAILED"}},
	{name: "no permission to write", missing: "rows", words: []string{"topic", "TOPIC_AUTHORIZATION_FAILED"}},
	{
		name: "no topic to read", words: []string{"topics", "UNKNOWN_TOPIC_OR_PARTITION"},
		spoil: func(t *testing.T, s *scenario) {
			_, err := s.admin.DeleteTopics(t.Context(), s.orders)
			require.NoError(t, err)
		},
		repair: func(t *testing.T, s *scenario) {
			s.create(t, s.orders, familyPartitions, nil)
			s.fill(t)
		},
	},
	{
		name: "no topic to write", words: []string{"topic", "UNKNOWN_TOPIC_OR_PARTITION"},
		spoil: func(t *testing.T, s *scenario) { s.rows = name(t, "missing") },
		repair: func(t *testing.T, s *scenario) {
			s.create(t, s.rows, 2, nil)
			s.out = s.tail(t, s.rows)
		},
	},
	{
		name: "no broker", words: []string{"seed_brokers"},
		spoil:  func(t *testing.T, s *scenario) { require.NoError(t, s.Stop()) },
		repair: func(t *testing.T, s *scenario) { require.NoError(t, s.Start()) },
	},
}

func TestWrongSetup(t *testing.T) {
	t.Parallel()
	c := openSecure(t)
	for _, setup := range setups {
		t.Run(setup.name, func(t *testing.T) {
			s := newScenario(t, c, stream(life.Seed(t), 300), 170)
			s.access = guest.field()
			s.fill(t)
			if setup.spoil != nil {
				setup.spoil(t, s)
			}
			permissions := map[string]func(){
				"group":  func() { c.grant(t, kadm.NewACLs().Groups(s.group), kadm.OpRead, kadm.OpDescribe) },
				"orders": func() { c.grant(t, kadm.NewACLs().Topics(s.orders), kadm.OpRead, kadm.OpDescribe) },
				"rows":   func() { c.grant(t, kadm.NewACLs().Topics(s.rows), kadm.OpWrite, kadm.OpDescribe) },
			}
			for what, give := range permissions {
				if what != setup.missing && setup.name != "no broker" {
					give()
				}
			}
			p := s.run(t)
			line := p.says(setup.words...)
			t.Log(line)
			require.True(t, p.running())
			if setup.repair != nil {
				setup.repair(t, s)
			}
			for what, give := range permissions {
				if what == setup.missing || setup.name == "no broker" {
					give()
				}
			}
			s.finish(t, p)
		})
	}
	t.Run("wrong password", func(t *testing.T) {
		s := newScenario(t, c, stream(life.Seed(t), 300), 170)
		s.access = login{guest.user, "wrong-word"}.field()
		s.fill(t)
		p := s.run(t)
		line := p.says("sasl", guest.user)
		t.Log(line)
		require.NotContains(t, p.Log.String(), "wrong-word", "a password in the log")
		require.True(t, p.running())
		require.Contains(t, []int{-1, 0, 1}, p.term(), "%s", p.tail())
		s.access = admin.field()
		s.finish(t, s.run(t))
	})
}
