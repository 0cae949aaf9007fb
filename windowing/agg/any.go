package agg

var anyFunction = define(Function{
	Name:    "any",
	also:    []string{"bool_or", "some"},
	Summary: "True if the condition is true for at least one row. Rows where it is null do not count.",
	Args:    []string{"condition"},
	MinArgs: 1,
	Check:   checkBool,
	Examples: []Example{
		{Call: "any(this.v > 1)", Values: `[false, null, true]`, Result: `true`},
		{Call: "any(this.v > 1)", Values: `[false, null]`, Result: `false`},
		{Call: "any(this.v > 1)", Values: `[null]`, Result: `null`},
	},
}, func(*Call) anyTrue { return anyTrue{} })

// anyTrue looks for true.
type anyTrue struct{ seen }

func (a *anyTrue) Merge(other Accumulator) { a.seen |= other.(*anyTrue).seen }

func (a *anyTrue) Result() (Value, error) {
	if a.seen == 0 {
		return Null(), nil
	}
	return Bool(a.seen&seenTrue != 0), nil
}

// seen says which bools came.
type seen uint8

const (
	seenTrue  seen = 1
	seenFalse seen = 2
)

func (s *seen) Add(in Input) {
	switch {
	case in.Value.IsNull():
	case in.Value.AsBool():
		*s |= seenTrue
	default:
		*s |= seenFalse
	}
}

func (s *seen) Append(b []byte) []byte { return append(b, byte(*s)) }

func (s *seen) decode(d *reader) {
	if *s = seen(d.byte()); *s > seenTrue|seenFalse {
		d.fail("unknown bool")
	}
}
