package windowing

import "errors"

// noEntry says that nothing is known of the revisions of a group.
const noEntry = -1

// drawn is what is known of a row that is drawn up.
type drawn struct {
	entry  int  // see source
	filled bool // see source
}

// entry finds a group among the revisions of a window.
func (w *Window) entry(r *revised, key []byte) int {
	if r == nil {
		return noEntry
	}
	if number, ok := r.groups.find(key); ok {
		return int(number)
	}
	return noEntry
}

// Condition decides whether a result comes out, see WindowConfig.Having. It is called
// by the operator, in its step.
type Condition func(res *Result) (keep bool, err error)

// keeps asks the condition, nil: all results come out.
func (c Condition) keeps(res *Result) bool {
	if c == nil {
		return true
	}
	keep, err := c(res)
	if err != nil {
		res.Err = errors.Join(res.Err, err)
	}
	return keep || err != nil
}

// revised gives a row its revision and says whether it comes out:
//
//	meets the condition | its row is out | comes out
//	yes                 |                | the row, with the next revision
//	no                  | yes            | a row that takes it back, with the next revision
//	no                  | no             | nothing
func (w *Window) revised(row *Result, window Span, r *revised, d drawn) bool {
	keep := w.config.Having.keeps(row)
	if d.entry == noEntry {
		w.remember(row, window, keep, d.filled)
		return keep
	}
	rev := &r.rows[d.entry]
	rev.stirs = false // its group need not be saved any more where the window is final
	if !keep && !rev.out {
		return false
	}
	rev.last++
	rev.out = keep
	row.Revision = rev.last
	if !keep {
		row.Timing, row.Values, row.Err = Deleted, nil, nil
	}
	if w.config.Lateness > 0 || w.config.Mode != Append {
		w.revisions.touch(r, uint32(d.entry))
	}
	return true
}

// remember notes what came of the first row of a group where its window stays for
// late rows and nothing else tells: that a group with rows did not come out, or
// one without did.
func (w *Window) remember(row *Result, window Span, keep, filled bool) {
	if w.config.Lateness == 0 || keep != filled {
		return
	}
	r := w.revisions.open(window)
	number, _ := r.place(row.Key)
	if keep {
		r.rows[number].last, r.rows[number].out = 1, true
	}
	w.revisions.touch(r, number)
}
