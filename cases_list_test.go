package memwrite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// recipes are the numbers of the client's cases; each is a test of that name.
var recipes = []int{
	1, 3, 4, 5, 6, 7, 9, 10, 11, // Retry-After and back-off
	12, 14, // budgets
	15, 16, 17, 18, 20, // idempotency
	21, 22, 24, 25, 26, 28, 30, // body replay, connections, leaks
	31, 32, 33, 34, 35, 36, 37, // timeouts and context
	39, 40, 41, 43, 44, 45, // waiters
	47, 48, 49, 50, 51, 52, 54, 55, 57, 58, 59, // errors, decoding, proxies, redirects, contract
}

func TestEveryRecipeIsATest(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[int]int{}
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func TestS(\d\d)_\w+\(t \*testing\.T\)`).FindAllSubmatch(source, -1) {
			n, _ := strconv.Atoi(string(m[1]))
			found[n]++
			if !slices.Contains(recipes, n) {
				t.Errorf("%s has a test of recipe %d, which is not in the list", name, n)
			}
		}
	}
	for _, n := range recipes {
		if found[n] != 1 {
			t.Error(fmt.Sprintf("TestS%02d_", n), "is there", found[n], "times")
		}
	}
}
