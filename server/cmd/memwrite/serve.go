package main

import (
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/service"
	"github.com/memwrite/memwrite-go/internal/store/memory"
	"github.com/memwrite/memwrite-go/server"
)

func serve() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer both services until interrupted",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			var keys []service.Key
			if k := os.Getenv("MEMWRITE_MEMORYSYNC_KEY"); k != "" {
				keys = append(keys, service.NewKey(k, "default", service.ServiceMemorySync, service.ScopeMemoryAll, service.ScopeProjectsRead))
			}
			if k := os.Getenv("MEMWRITE_FISHMEM_KEY"); k != "" {
				keys = append(keys, service.NewKey(k, "default", service.ServiceFishMem, service.ScopeMemoryRead, service.ScopeMemoryWrite, service.ScopeOperationsRead))
			}
			node, err := server.New(ctx, server.Options{
				Store: memory.New(1), Keys: keys, Log: log,
				Workspaces: []protocol.Workspace{{ID: "default", AddsPerMonth: -1, Credits: -1}},
			})
			if err != nil {
				return err
			}
			defer node.Close()
			l, err := net.Listen("tcp", listen)
			if err != nil {
				return err
			}
			log.Info("serving", "url", "http://"+l.Addr().String())
			return node.Serve(ctx, l, 10*time.Second)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8080", "`address` to listen on")
	return cmd
}
