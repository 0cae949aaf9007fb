package agg

import (
	"fmt"
	"slices"
	"strings"
)

// table holds every function, sorted by name: adding one takes its file and one
// line here.
var table = []*Function{
	anyFunction,
	approxCountDistinctFunction,
	approxQuantileFunction,
	avgFunction,
	collectFunction,
	collectSetFunction,
	countFunction,
	countDistinctFunction,
	countIfFunction,
	everyFunction,
	firstFunction,
	lastFunction,
	maxFunction,
	maxByFunction,
	medianFunction,
	minFunction,
	minByFunction,
	quantileFunction,
	reduceFunction,
	stddevFunction,
	sumFunction,
	topKFunction,
	varianceFunction,
}

// Functions is the table, sorted by name. It is the caller's to keep, the
// entries are not to be changed.
func Functions() []*Function { return slices.Clone(table) }

// find looks a function up; the error names the nearest and all the others.
func find(name string) (*Function, error) {
	other, names := "", make([]string, len(table))
	for i, f := range table {
		if f.Name == name {
			return f, nil
		}
		if slices.Contains(f.also, strings.ToLower(name)) {
			other = f.Name
		}
		names[i] = f.Name
	}
	hint := didYouMean(name, names)
	if other != "" {
		hint = suggest(other)
	}
	return nil, fmt.Errorf("unknown function %.40q%s; allowed: %s", name, hint, strings.Join(names, ", "))
}

// didYouMean suggests the nearest name, where one is near.
func didYouMean(name string, names []string) string {
	best, nearest := max(2, len(name)/3)+1, ""
	for _, n := range names {
		if d := editDistance(strings.ToLower(name), n); d < best {
			best, nearest = d, n
		}
	}
	if nearest == "" {
		return ""
	}
	return suggest(nearest)
}

func suggest(name string) string { return fmt.Sprintf(" (did you mean %s?)", name) }

// editDistance is the number of characters to insert, delete or replace
// (Levenshtein). Names are short.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
