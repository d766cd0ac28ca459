package memwrite

import (
	"maps"
	"reflect"
	"testing"

	"github.com/memwrite/memwrite-go/internal/api"
)

// Add encodes its body itself, to save a pointer a field. What the contract
// gains, it must gain too.
func TestAddsBodyIsTheContracts(t *testing.T) {
	t.Parallel()
	tags := func(of reflect.Type) map[string]bool {
		found := map[string]bool{}
		for i := range of.NumField() {
			found[of.Field(i).Tag.Get("json")] = true
		}
		return found
	}
	contract := tags(reflect.TypeFor[api.AddMemoryRequest]())
	delete(contract, "content,omitempty") // an alias of text
	if own := tags(reflect.TypeFor[addBody]()); !maps.Equal(own, contract) {
		t.Errorf("Add sends %v, the contract has %v", own, contract)
	}
}
