package drive

import (
	"runtime"
	"strings"
)

// stacks gives the goroutines that are inside the product, for messages about
// something that hangs.
func stacks() string {
	buf := make([]byte, 4<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var out []string
	for _, g := range strings.Split(string(buf), "\n\n") {
		for _, pkg := range []string{"/processors.", "/windowing", "/statecache"} {
			if strings.Contains(g, "connect-windowed"+pkg) {
				out = append(out, g)
				break
			}
		}
	}
	return strings.Join(out, "\n\n")
}
