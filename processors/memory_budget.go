package processors

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/service"
)

const fieldMemoryBudget = "memory_budget"

func memoryBudgetField() *service.ConfigField {
	return service.NewStringField(fieldMemoryBudget).Default("").Advanced().Example("64MiB").
		Description("About how many bytes of the operators' state may stay in memory, such as `64MiB`. Past it, what is on disk leaves memory, and is read back when a row asks for it or its time has come. Deduplications, joins, keyed states and windows whose rows come out once can do with less than all of their state; those of a chain share the budget equally. Sessions and windows that revise their rows stay in memory. It needs a `state` on disk. Empty is no limit. It may change freely, and is not the memory of the process: see [State larger than memory](../operations.md#state-larger-than-memory).")
}

// errBudgetInMemory says that there is nowhere to put state.
var errBudgetInMemory = errors.New(fieldMemoryBudget + ": state in memory cannot be read back from anywhere: set state to the label of a bbolt cache, or remove " + fieldMemoryBudget)

// parseMemoryBudget reads the budget, 0: none. state is where the state is.
func parseMemoryBudget(conf *service.ParsedConfig, state string) (int64, error) {
	text, err := conf.FieldString(fieldMemoryBudget)
	if err != nil || text == "" {
		return 0, err
	}
	n, err := toBytes(fieldMemoryBudget, text)
	if err == nil && (state == memory || state == "") {
		err = errBudgetInMemory
	}
	return n, err
}

// byteUnits are the units of sizes, the longer ones first.
var byteUnits = []struct {
	name string
	size int64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12}, {"b", 1},
}

// toBytes reads a number of bytes above 0.
func toBytes(field, text string) (int64, error) {
	number, size := strings.ToLower(strings.TrimSpace(text)), int64(1)
	for _, u := range byteUnits {
		if rest, found := strings.CutSuffix(number, u.name); found {
			number, size = strings.TrimSpace(rest), u.size
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 || n > math.MaxInt64/size {
		return 0, fmt.Errorf("%s: %q is not a number of bytes above 0: use a whole number with a unit, such as 500KiB, 64MiB or 2GiB", field, text)
	}
	return n * size, nil
}

// Shares of a memory budget that other parts of a host take beside its state.
const (
	logShare     = 4  // the log of the state file, which folds earlier
	pendingShare = 64 // messages between two commits: what they changed stays in memory until it is on disk
	leastPending = 64 << 10
)
