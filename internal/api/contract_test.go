package api_test

import (
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

const contractPath = "../../openapi.yaml"

func loadContract(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile(contractPath)
	if err != nil {
		t.Fatalf("load the contract: %v", err)
	}
	return doc
}

func TestContractValidates(t *testing.T) {
	t.Parallel()
	doc := loadContract(t)
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatalf("the contract or one of its examples is not valid: %v", err)
	}
}
