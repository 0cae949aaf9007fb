package processors

import (
	"fmt"
	"math"
	"time"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// The mappings of keyed_state see times as numbers of seconds, good to a
// microsecond: that is what a float64 of today's seconds can tell apart, and code
// may add seconds to it.

const microsecond = watermark.Time(time.Microsecond)

// secondsOf is a time as a mapping sees it: rounded to the nearest microsecond, an
// integer where it is one, null while it is unset.
func secondsOf(t watermark.Time) any {
	if t == watermark.Unset {
		return nil
	}
	micros := int64(nearestMicrosecond(t) / microsecond)
	if micros%1e6 == 0 {
		return micros / 1e6
	}
	return float64(micros) / 1e6
}

// timeOfSeconds is the time that a mapping has set, rounded to the nearest
// microsecond: what it has computed may be off by less.
func timeOfSeconds(x any) (watermark.Time, error) {
	v, err := agg.FromAny(x)
	if err != nil {
		return 0, err
	}
	var t watermark.Time
	switch v.Kind() {
	case agg.KindInt:
		t, err = watermark.Second.FromInt(v.AsInt())
	case agg.KindFloat:
		t, err = watermark.Second.FromFloat(v.AsFloat())
	default:
		return 0, fmt.Errorf("%.60s is no time: use a number of seconds, such as this.event_time + 10", v.AppendJSON(nil))
	}
	return nearestMicrosecond(t), err
}

// nearestMicrosecond rounds, at the ends of time towards the middle.
func nearestMicrosecond(t watermark.Time) watermark.Time {
	rest := t % microsecond // with the sign of t
	t -= rest
	if rest >= microsecond/2 && t <= math.MaxInt64-2*microsecond {
		t += microsecond
	}
	if rest < -microsecond/2 && t >= math.MinInt64+2*microsecond {
		t -= microsecond
	}
	return t
}
