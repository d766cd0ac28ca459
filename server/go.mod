module github.com/memwrite/memwrite-go/server

go 1.26.0

require (
	github.com/memwrite/memwrite-go v0.0.0
	github.com/spf13/cobra v1.10.2
)

require (
	github.com/apapsch/go-jsonmerge/v2 v2.0.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/oapi-codegen/nullable v1.2.0 // indirect
	github.com/oapi-codegen/runtime v1.9.0 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
)

replace github.com/memwrite/memwrite-go => ../
