package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/processors"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// page is what a component's page is made of.
type page struct {
	service.TemplateDataPlugin
	Kind       string
	Aggregates []*agg.Function
}

// pages gives the text of every page by its file name.
func pages() (map[string][]byte, error) {
	env := service.GlobalEnvironment()
	out := map[string][]byte{}
	add := func(kind, name string, view *service.ConfigView, ok bool) error {
		if !ok {
			return fmt.Errorf("%s %s is not registered", kind, name)
		}
		text, err := render(kind, view)
		out[kind+"-"+name+".md"] = text
		return err
	}
	for _, name := range processors.Operators() {
		view, ok := env.GetProcessorConfig(name)
		if err := add("processor", name, view, ok); err != nil {
			return nil, err
		}
	}
	input, ok := env.GetInputConfig("windowed")
	if err := add("input", "windowed", input, ok); err != nil {
		return nil, err
	}
	processor, ok := env.GetProcessorConfig("windowed")
	if err := add("processor", "windowed", processor, ok); err != nil {
		return nil, err
	}
	cache, ok := env.GetCacheConfig("bbolt")
	if err := add("cache", "bbolt", cache, ok); err != nil {
		return nil, err
	}
	scanner, ok := env.GetScannerConfig("lines_batch")
	if err := add("scanner", "lines_batch", scanner, ok); err != nil {
		return nil, err
	}
	redpanda, ok := env.GetInputConfig("redpanda")
	if err := add("input", "redpanda", redpanda, ok); err != nil {
		return nil, err
	}
	for _, name := range []string{"redpanda", "sql_insert", "sql_raw"} {
		output, ok := env.GetOutputConfig(name)
		if err := add("output", name, output, ok); err != nil {
			return nil, err
		}
	}
	out["README.md"] = index(out)
	return out, nil
}

func render(kind string, view *service.ConfigView) ([]byte, error) {
	data, err := view.TemplateData()
	if err != nil {
		return nil, err
	}
	p := page{TemplateDataPlugin: data, Kind: kind}
	if slices.ContainsFunc(data.Fields, func(f service.TemplateDataPluginField) bool { return f.FullName == "aggregates" }) {
		p.Aggregates = agg.Functions()
	}
	var b bytes.Buffer
	if err := layout.Execute(&b, p); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// index is the page that leads to the others.
func index(pages map[string][]byte) []byte {
	var b bytes.Buffer
	b.WriteString("# Components\n\nMade by `make docs` from the specs that `connect-windowed create` and `lint` use.\n\n")
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(name, ".md"), "-")
		fmt.Fprintf(&b, "- [%s `%s`](%s)\n", kind, rest, name)
	}
	return b.Bytes()
}

var layout = template.Must(template.New("page").Funcs(template.FuncMap{
	"trim":  strings.TrimSpace,
	"usage": func(f *agg.Function) string { return f.Usage() },
}).Parse(`# {{.Kind}} ` + "`{{.Name}}`" + `

{{trim .Summary}}

` + "```yaml\n{{trim .AdvancedConfigYAML}}\n```" + `
{{with trim .Description}}
{{.}}
{{end}}{{range .Examples}}
## {{.Title}}

{{with trim .Summary}}{{.}}

{{end}}` + "```yaml\n{{trim .Config}}\n```" + `
{{end}}
## Fields
{{range .Fields}}
### ` + "`{{.FullName}}`" + `

{{trim .Description}}

Type: ` + "`{{.Type}}`" + `{{with .DefaultMarshalled}}, default ` + "`{{.}}`" + `{{end}}{{with .Options}}, one of{{range .}} ` + "`{{.}}`" + `{{end}}{{end}}
{{with .ExamplesMarshalled}}
` + "```yaml{{range .}}\n{{trim .}}{{end}}\n```" + `
{{end}}{{end}}{{with .Aggregates}}
## Aggregates
{{range .}}
### ` + "`{{usage .}}`" + `

{{trim .Summary}}
{{end}}{{end}}`))
