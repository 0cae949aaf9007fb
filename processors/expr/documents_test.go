package expr

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyDocuments(t *testing.T) {
	for text, only := range map[string]bool{
		`this.a.b`: true, `"x"`: true, `1`: true, `null`: true, `this.a == "x"`: true, `this.a >= 500`: true,
		`@key`: false, `metadata("key")`: false, `@key == "x"`: false, `meta("key")`: false, `error()`: false,
		`this.a + 1`: false, `batch_index()`: false, `content()`: false, `root = this.a`: false,
		`if this.a == 1 { @key } else { this.b }`: false, `this.apply("m")`: false,
	} {
		s := NewSet()
		_, err := s.Value("f", `this.a`)
		require.NoError(t, err)
		if _, err = s.Value("f", text); err == nil {
			require.Equal(t, only, s.OnlyDocuments(), text)
		} else {
			require.Equal(t, `this.apply("m")`, text, "%v", err)
		}
	}
	require.True(t, NewSet().OnlyDocuments())
}
