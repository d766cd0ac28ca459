package memwrite_test

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const exportedPath = "api/memwrite.txt"

// TestExportedAPI compares what the package exports with the committed list, so
// that a change of the public API is seen in review and never by accident.
// `make api` writes the list anew.
func TestExportedAPI(t *testing.T) {
	t.Parallel()
	got := exportedAPI(t)
	if os.Getenv("MEMWRITE_UPDATE_API") != "" {
		if err := os.MkdirAll(filepath.Dir(exportedPath), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(exportedPath, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(exportedPath)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	had, has := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for _, line := range had {
		if !slices.Contains(has, line) {
			t.Errorf("gone:  %s", line)
		}
	}
	for _, line := range has {
		if !slices.Contains(had, line) {
			t.Errorf("new:   %s", line)
		}
	}
	t.Errorf("the exported API differs from %s; when that is meant, run make api and say so in the changelog", exportedPath)
}

// exportedAPI prints every exported declaration of the package in this
// directory without bodies, comments and unexported parts, sorted.
func exportedAPI(t *testing.T) string {
	t.Helper()
	names, err := fs.Glob(os.DirFS("."), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	var declarations []string
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		// Comments are not parsed, so none is printed.
		file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.FileExports(file)
		for _, declaration := range file.Decls {
			declarations = append(declarations, printDeclaration(t, declaration)...)
		}
	}
	slices.Sort(declarations)
	return strings.Join(declarations, "\n") + "\n"
}

func printDeclaration(t *testing.T, declaration ast.Decl) []string {
	t.Helper()
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil && !receiverIsExported(d.Recv.List[0].Type) {
			return nil
		}
		d.Body = nil
		return []string{printNode(t, d)}
	case *ast.GenDecl:
		if d.Tok == token.IMPORT {
			return nil
		}
		if d.Tok == token.CONST {
			// A group with iota has a meaning only as a whole.
			return []string{printNode(t, d)}
		}
		var out []string
		for _, spec := range d.Specs {
			if value, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.VAR {
				value.Values = nil
				if value.Type == nil {
					for _, name := range value.Names {
						out = append(out, "var "+name.Name)
					}
					continue
				}
			}
			out = append(out, printNode(t, &ast.GenDecl{Tok: d.Tok, Specs: []ast.Spec{spec}}))
		}
		return out
	}
	return nil
}

func receiverIsExported(expr ast.Expr) bool {
	switch e := expr.(type) {
	case *ast.StarExpr:
		return receiverIsExported(e.X)
	case *ast.IndexExpr:
		return receiverIsExported(e.X)
	case *ast.Ident:
		return e.IsExported()
	}
	return false
}

// printNode prints with an empty file set: positions would carry the layout of
// the source into the list.
func printNode(t *testing.T, node ast.Node) string {
	t.Helper()
	var out bytes.Buffer
	if err := format.Node(&out, token.NewFileSet(), node); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
