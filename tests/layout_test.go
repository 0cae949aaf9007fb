package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/connect-windowed/connect-windowed/"

// may says which packages a package may depend on, whether directly or through
// others, beside the standard library. The longest prefix counts. A name ending
// in "/" stands for everything below it.
var may = map[string][]string{
	"watermark":      {"watermark"},
	"statecache/kv":  {"statecache/kv", "statecache/internal/"},
	"statecache":     {"statecache", "statecache/", "go.etcd.io/bbolt", "go.etcd.io/bbolt/", "golang.org/x/sys/"},
	"windowing/agg":  {"windowing/agg", "windowing/agg/", "watermark", "statecache/kv", "statecache/internal/"},
	"windowing":      {"windowing", "windowing/agg", "windowing/agg/", "watermark", "statecache/kv", "statecache/internal/"},
	"windowing/host": {"windowing", "windowing/", "watermark", "statecache/kv", "statecache/internal/"},
}

// sketches are the libraries of the approximate functions in windowing/agg, with
// what they bring along.
var sketches = []string{"github.com/DataDog/sketches-go/", "google.golang.org/protobuf/",
	"github.com/axiomhq/hyperloglog", "github.com/dgryski/go-metro", "github.com/kamstrup/intmap"}

// free are the folders whose packages may depend on anything below them.
var free = []string{"processors", "cmd", "tests", "config"}

// TestImportsGoDown keeps the directions: processors -> windowing/host ->
// windowing -> windowing/agg, watermark, statecache/kv, and statecache ->
// statecache/kv, bbolt. Benthos is known to processors, the command and tests.
func TestImportsGoDown(t *testing.T) {
	for _, pkg := range list(t, "-f", "{{.ImportPath}}", "./...") {
		name := strings.TrimPrefix(pkg, module)
		top, _, _ := strings.Cut(name, "/")
		if slices.Contains(free, top) {
			continue
		}
		rule, found := ruleOf(name)
		require.True(t, found, "%s has no rule: the top level is agreed, see the design", name)
		for _, dep := range list(t, "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", pkg) {
			dep = strings.TrimPrefix(dep, module)
			if dep != "" && dep != name {
				require.True(t, allows(rule, dep), "%s depends on %s", name, dep)
			}
		}
	}
}

func ruleOf(name string) (rule []string, found bool) {
	longest := -1
	for prefix, list := range may {
		if (name == prefix || strings.HasPrefix(name, prefix+"/")) && len(prefix) > longest {
			rule, longest = list, len(prefix)
		}
	}
	if strings.HasPrefix(name, "windowing") {
		rule = append(slices.Clone(rule), sketches...)
	}
	return rule, longest >= 0
}

func allows(rule []string, dep string) bool {
	return slices.ContainsFunc(rule, func(r string) bool {
		return r == dep || strings.HasSuffix(r, "/") && strings.HasPrefix(dep, r)
	})
}

func list(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = ".."
	out, err := cmd.Output()
	require.NoError(t, err, "%s", cmd)
	return strings.Fields(string(out))
}

// The limits of the project's style.
const (
	fileLines      = 400
	functionLines  = 70
	interfaceCount = 4
)

// TestSizes holds files, functions and interfaces to the limits. Functions of
// tests may be longer.
func TestSizes(t *testing.T) {
	var problems []string
	eachFile(t, func(path string, file *ast.File, set *token.FileSet) {
		if n := set.Position(file.FileEnd).Line; n > fileLines {
			problems = append(problems, path+" is longer than a file may be")
		}
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if set.Position(n.End()).Line-set.Position(n.Pos()).Line >= functionLines {
					problems = append(problems, path+": "+n.Name.Name+" is longer than a function may be")
				}
			case *ast.TypeSpec:
				if i, ok := n.Type.(*ast.InterfaceType); ok && i.Methods.NumFields() > interfaceCount {
					problems = append(problems, path+": "+n.Name.Name+" has more methods than an interface may have")
				}
			}
			return true
		})
	})
	require.Empty(t, problems, "\n%s", strings.Join(problems, "\n"))
}

// pure are the packages to which time is an argument and which leave concurrency
// to their caller.
var pure = []string{"watermark", "statecache/kv", "windowing", "windowing/agg"}

func TestPurePackagesHaveNoClockAndNoGoroutine(t *testing.T) {
	var problems []string
	eachFile(t, func(path string, file *ast.File, set *token.FileSet) {
		if strings.HasSuffix(path, "_test.go") || !slices.Contains(pure, filepath.ToSlash(filepath.Dir(path))) {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				problems = append(problems, set.Position(n.Pos()).String()+": a goroutine")
			case *ast.SelectorExpr:
				pkg, _ := n.X.(*ast.Ident)
				if pkg == nil {
					break
				}
				switch pkg.Name + "." + n.Sel.Name {
				case "time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.NewTimer", "time.NewTicker", "sync.Mutex", "sync.RWMutex":
					problems = append(problems, set.Position(n.Pos()).String()+": "+pkg.Name+"."+n.Sel.Name)
				}
			}
			return true
		})
	})
	require.Empty(t, problems, "\n%s", strings.Join(problems, "\n"))
}

// eachFile parses every Go file of the repository.
func eachFile(t *testing.T, visit func(path string, file *ast.File, set *token.FileSet)) {
	t.Helper()
	set := token.NewFileSet()
	require.NoError(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".." {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel("..", path)
		visit(rel, file, set)
		return err
	}))
}
