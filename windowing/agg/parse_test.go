package agg

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	f := func(text, wantText, wantWhere string, wantExprs ...string) {
		t.Helper()
		c, err := Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, wantText, c.Text, text)
		require.Equal(t, wantWhere, c.Where, text)
		require.Equal(t, wantExprs, c.Exprs, text)
		again, err := Parse(c.Text)
		require.NoError(t, err, c.Text)
		require.Equal(t, c.Text, again.Text)
	}
	f(`count()`, `count()`, ``)
	f(` count ( ) `, `count()`, ``)
	f(`count(where: this.paid)`, `count(where: this.paid)`, `this.paid`)
	f(`sum(this.amount)`, `sum(this.amount)`, ``, `this.amount`)
	f(`sum( this.amount , where : this.a > 1 )`, `sum(this.amount, where: this.a > 1)`, `this.a > 1`, `this.amount`)
	f(`count(@kafka_key)`, `count(@kafka_key)`, ``, `@kafka_key`)
	f(`sum(this.x.or(0).max([1, 2]), where: this.y.any(v -> v.z == ")"))`,
		`sum(this.x.or(0).max([1, 2]), where: this.y.any(v -> v.z == ")"))`,
		`this.y.any(v -> v.z == ")")`, `this.x.or(0).max([1, 2])`)
	f(`count({"a": [1, (2)], "b,": "\\"})`, `count({"a": [1, (2)], "b,": "\\"})`, ``, `{"a": [1, (2)], "b,": "\\"}`)
	f(`count("a\"),(" + """x")," y""" + "")`, `count("a\"),(" + """x")," y""" + "")`, ``, `"a\"),(" + """x")," y""" + ""`)
	f("sum(this.a # price, net (EUR\n  , where: this.b) # done", `sum(this.a, where: this.b)`, `this.b`, `this.a`)
	f("sum(# first\n root = this.a # one\n root.b = 2\n)", "sum(root = this.a # one\n root.b = 2)", ``, "root = this.a # one\n root.b = 2")
	f("sum(match this.k { \"a\" => this.x, _ => 0 })", "sum(match this.k { \"a\" => this.x, _ => 0 })", ``, "match this.k { \"a\" => this.x, _ => 0 }")
	f(`sum(this."a,b")`, `sum(this."a,b")`, ``, `this."a,b"`)
	f(`sum(this.größe)`, `sum(this.größe)`, ``, `this.größe`)
	f(`reduce(this.v, init: {"n": 0}, add: {"n": this.acc.n + 1}, merge: {"n": this.left.n + this.right.n}, result: this.acc.n)`,
		`reduce(this.v, init: {"n": 0}, add: {"n": this.acc.n + 1}, merge: {"n": this.left.n + this.right.n}, result: this.acc.n)`, ``, `this.v`)
}

func TestParseRefuses(t *testing.T) {
	f := func(text string, parts ...string) {
		t.Helper()
		_, err := Parse(text)
		require.ErrorIs(t, err, ErrCall, text)
		for _, part := range append(parts, strings.TrimSpace(text)[:min(4, len(strings.TrimSpace(text)))]) {
			require.ErrorContains(t, err, part, text)
		}
	}
	f(``, `unknown function ""`, `allowed: `, `avg, collect`)
	f(`summ(this.x)`, `unknown function "summ"`, `did you mean sum?`, `avg, collect`)
	f(`SUM(this.x)`, `did you mean sum?`)
	f(`percentile(this.x, 0.9)`, `did you mean quantile?`)
	f(`Array_Agg(this.x)`, `did you mean collect?`)
	f(`this.x`, `unknown function`)
	f(`count`, `parentheses are missing`, `count([value])`)
	f(`sum()`, `argument number is missing`, `sum(number)`)
	f(`sum(where: this.x)`, `argument number is missing`)
	f(`sum(this.x, 3)`, `"3" is one argument too many`, `sum(number)`)
	f(`sum(this.x,)`, `an argument is empty`)
	f(`sum(,this.x)`, `an argument is empty`)
	f(`sum(this.x, where:)`, `option where has no value`)
	f(`sum(this.x, where: a, where: b)`, `option where is there twice`)
	f(`sum(this.x, wehre: a)`, `unknown option wehre`, `did you mean where?`, `allowed for sum: where`)
	f(`sum(this.x`, `closing parenthesis is missing`, `put quotes around`)
	f(`sum((this.x)`, `closing parenthesis is missing`)
	f(`sum([this.x)`, `')' closes nothing`)
	f(`sum([this.x`, `a '[' is not closed`)
	f(`sum("this.x)`, `a quoted text is not closed`)
	f(`sum("""this.x")`, `three quotes is not closed`)
	f(`sum(this.x) / 2`, `"/ 2" stands behind the call`)
	f(`reduce(this.v, init: 0, add: 1)`, `option merge is missing`)
	f(`reduce(this.v, init: 0, init: 1, add: 1, merge: 1)`, `option init is there twice`)
	f(`reduce(this.v, init: 0, add: 1, merge: 1, limit_bytes: 1.5)`, `limit_bytes is "1.5", allowed is a whole number from 1 to`)
}

func TestUsage(t *testing.T) {
	require.Equal(t, "count([value])", countFunction.Usage())
	require.Equal(t, "sum(number)", sumFunction.Usage())
}

func FuzzParse(f *testing.F) {
	for _, fn := range Functions() {
		f.Add(fn.Examples[0].Call)
	}
	f.Add("sum(\"\"\"a\"\"\" # c\n, where: {\"a\":[1]})")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse(text)
		if err != nil {
			require.ErrorIs(t, err, ErrCall)
			return
		}
		again, err := Parse(c.Text)
		require.NoError(t, err, c.Text)
		require.Equal(t, c.Text, again.Text)
		require.Equal(t, c.Exprs, again.Exprs)
		require.Equal(t, c.Where, again.Where)
	})
}

func TestEveryUsageNamesItsArguments(t *testing.T) {
	for _, f := range Functions() {
		usage := f.Usage()
		for _, name := range f.Args {
			require.Contains(t, usage, name)
		}
		for _, o := range f.Options {
			required := o.Default.IsNull() && !o.Optional
			require.Equal(t, required, strings.Contains(usage, o.Name), "%s: %s", usage, o.Name)
		}
	}
}
