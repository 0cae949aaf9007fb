package processors_test

const (
	ordersAndPayments = `{ watermark: { event_time: this.ts, delay: 1m, sources: { orders: { when: this.a }, payments: { when: this.b } } } }`
	ordersSide        = "left: { source: orders, key: this.id }"
	paymentsSide      = "right: { source: payments, key: this.id }"
)

// join is a join in a host.
func join(fields string) string {
	return inHost(ordersAndPayments + ", { interval_join: { " + fields + " } }")
}

func dedupe(fields string) string {
	return alone("watermark_dedupe: { " + fields + " }")
}

func init() {
	sides := ordersSide + ", " + paymentsSide
	mistakes = append(mistakes, []mistake{
		// joins
		{name: "join without watermark", conf: inHost("{ interval_join: { " + sides + ", upper: 5m } }"), parts: []string{`interval_join "interval_join"`, "no watermark upstream"}},
		{name: "join of an unknown source", conf: join("left: { source: order, key: this.id }, " + paymentsSide + ", upper: 5m"), parts: []string{`interval_join "interval_join"`, `left.source: "order" is not known`, "use one of orders, payments"}},
		{name: "join of an unknown source in the input", conf: inInput(ordersAndPayments + ", { interval_join: { " + ordersSide + ", right: { source: \"\", key: this.id }, upper: 5m } }"), parts: []string{`right.source: ""`, "use one of orders, payments"}},
		{name: "join without sources", conf: inHost(mark + ", { interval_join: { " + sides + ", upper: 5m } }"), parts: []string{`left.source: "orders" is not known`, "has none", "give it sources"}},
		{name: "join behind a second watermark", conf: inHost(ordersAndPayments + ", { watermark: { name: again } }, { interval_join: { " + sides + ", upper: 5m } }"), parts: []string{`left.source: "orders" is not known`}},
		{name: "join with itself", conf: join(ordersSide + ", right: { source: orders, key: this.id }, upper: 5m"), parts: []string{"left.source and right.source", `"orders"`, "two sources"}},
		{name: "bounds", conf: join(sides + ", lower: 5m, upper: 1m"), parts: []string{"lower: 5m0s", "upper: 1m0s", "must not be above"}},
		{name: "excluded bounds", conf: join(sides + ", lower: 1m, upper: 1m, upper_inclusive: false"), parts: []string{"lower: 1m0s", "nothing lies between"}},
		{name: "bound", conf: join(sides + ", upper: soon"), parts: []string{"upper:", "soon", "not a duration"}},
		{name: "no upper bound", conf: join(sides), parts: []string{"upper"}},
		{name: "join type", conf: join(sides + ", upper: 1m, type: outer"), parts: []string{"outer"}},
		{name: "join key", conf: join("left: { source: orders, key: this.( }, " + paymentsSide + ", upper: 1m"), parts: []string{"left.key:", "line 1 column"}},
		{name: "empty join key", conf: join("left: { source: orders, key: ' ' }, " + paymentsSide + ", upper: 1m"), parts: []string{"left.key: must not be empty", "this.id"}},
		{name: "matches", conf: join(sides + ", upper: 1m, max_matches: -1"), parts: []string{"max_matches: -1", "1 or more"}},
		{name: "matches of a semi join", conf: join(sides + ", upper: 1m, type: semi, max_matches: 5"), parts: []string{"max_matches:", "remove it"}},
		{name: "result", conf: join(sides + ", upper: 1m, result: 'root = this.'"), parts: []string{"result:", "no Bloblang"}},
		{name: "empty result", conf: join(sides + ", upper: 1m, result: ' '"), parts: []string{"result: must not be empty"}},
		{name: "join behind updates", conf: inHost(ordersAndPayments + ", { tumbling_window: { size: 5m, output_mode: update, aggregates: { n: count() } } }, { interval_join: { " + sides + ", upper: 5m } }"), parts: []string{"may emit a row key twice"}},

		// deduplication
		{name: "dedupe without watermark", conf: inHost("{ watermark_dedupe: { key: this.id } }"), parts: []string{"no watermark upstream"}},
		{name: "dedupe key", conf: dedupe("key: this.("), parts: []string{"key:", "line 1 column"}},
		{name: "empty dedupe key", conf: dedupe("key: ''"), parts: []string{"key: must not be empty"}},
		{name: "within", conf: dedupe("key: this.id, within: -1m"), parts: []string{"within: -1m", "negative"}},
		{name: "within of a day", conf: dedupe("key: this.id, within: 1d"), parts: []string{"within:", "1d", "not a duration"}},
		{name: "within and event time", conf: dedupe("key: this.id, within: 1m, with_event_time: true"), parts: []string{"within: with_event_time", "remove one of the two"}},
		{name: "keep", conf: dedupe("key: this.id, keep: newest"), parts: []string{"newest"}},
		{name: "duplicates", conf: dedupe("key: this.id, duplicates: mark"), parts: []string{"mark"}},
		{name: "the last row without within", conf: dedupe("key: this.id, keep: last"), parts: []string{`watermark_dedupe "watermark_dedupe"`, "within: missing", "set within"}, blind: true},
	}...)
}
