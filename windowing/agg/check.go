package agg

import "fmt"

// checkNumber takes finite numbers and null.
func checkNumber(c *Call, in Input) error { return number(c, c.argument(0), in.Value) }

func number(c *Call, name string, v Value) error {
	if v.kind == KindInt || v.kind == KindNull || v.kind == KindFloat && v.IsFinite() {
		return nil
	}
	return c.refuse(name, v, "finite numbers", "convert it with .number()")
}

// checkBool takes true, false and null.
func checkBool(c *Call, in Input) error {
	if in.Value.kind <= KindBool {
		return nil
	}
	return c.refuse(c.argument(0), in.Value, "true and false", "write a comparison")
}

// checkValue takes everything that JSON can write.
func checkValue(c *Call, in Input) error {
	if in.Value.IsFinite() {
		return nil
	}
	return c.refuse(c.argument(0), in.Value, "finite numbers, texts, bools, lists and objects", "replace it by null")
}

// checkOrdered takes any value by a number.
func checkOrdered(c *Call, in Input) error {
	if err := checkValue(c, in); err != nil {
		return err
	}
	if in.By.IsNumber() || in.By.IsNull() {
		return number(c, c.argument(1), in.By)
	}
	return c.refuse(c.argument(1), in.By, "finite numbers", "for a time use .ts_unix_nano(), for other texts .number()")
}

func (c *Call) argument(i int) string {
	if i < len(c.Exprs) {
		return c.Exprs[i]
	}
	return "its argument"
}

// refuse is the error for a value that the function does not take.
func (c *Call) refuse(name string, v Value, allowed, remedy string) error {
	return fmt.Errorf("%w of %.100s: %.60s is the %s, allowed are %s and null, which is ignored; %s, or leave such rows out with a `where: <condition>`",
		ErrArgument, c.Text, name, v.describe(), allowed, remedy)
}

// describe shows a value in an error message.
func (v Value) describe() string {
	if !v.IsFinite() {
		return fmt.Sprintf("number %v", v.AsFloat())
	}
	return fmt.Sprintf("%s %.60s", v.kind, v.AppendJSON(nil))
}

// overflow is the error of a result that no number of JSON's usual readers
// holds.
func overflow(what string) (Value, error) {
	return Value{}, fmt.Errorf("%w: %s", ErrOverflow, what)
}

const (
	overflowInt   = "the sum of the integers is outside -9223372036854775808 to 9223372036854775807; add floats instead, for example with `* 1.0`"
	overflowFloat = "the result is larger than the largest float, 1.8e308"
)
