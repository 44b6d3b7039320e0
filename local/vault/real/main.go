// A Vault in memory, on one loopback address, for tests and for the local cloud: its core with AppRole and KV version 2,
// and nothing else. It ends with its parent's pipe on standard input, and forgets everything.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"
	kv "github.com/hashicorp/vault-plugin-secrets-kv"
	"github.com/hashicorp/vault/builtin/credential/approle"
	"github.com/hashicorp/vault/helper/namespace"
	vaulthttp "github.com/hashicorp/vault/http"
	"github.com/hashicorp/vault/internalshared/configutil"
	"github.com/hashicorp/vault/sdk/helper/consts"
	"github.com/hashicorp/vault/sdk/logical"
	"github.com/hashicorp/vault/sdk/physical/inmem"
	"github.com/hashicorp/vault/vault"
)

// Vault asks which plugins it brings. It has those two, and they are named to it as factories.
type builtins struct{}

func (builtins) Contains(name string, _ consts.PluginType) bool {
	return name == "approle" || name == "kv"
}

func (builtins) Get(name string, _ consts.PluginType) (func() (interface{}, error), bool) {
	factories := map[string]logical.Factory{"approle": approle.Factory, "kv": kv.Factory}
	factory, there := factories[name]
	return func() (interface{}, error) { return factory, nil }, there
}

func (builtins) Keys(consts.PluginType) []string { return nil }

func (builtins) DeprecationStatus(string, consts.PluginType) (consts.DeprecationStatus, bool) {
	return consts.Supported, true
}

func (builtins) IsBuiltinEntPlugin(string, consts.PluginType) bool { return false }

// A new, unsealed Vault, and its root token.
func start() (*vault.Core, string, error) {
	logger := hclog.New(&hclog.LoggerOptions{Level: hclog.Error})
	storage, err := inmem.NewInmem(nil, logger)
	if err != nil {
		return nil, "", err
	}
	core, err := vault.NewCore(&vault.CoreConfig{
		Physical:           storage,
		LogicalBackends:    map[string]logical.Factory{"kv": kv.Factory},
		CredentialBackends: map[string]logical.Factory{"approle": approle.Factory},
		BuiltinRegistry:    builtins{},
		DisableMlock:       true,
		DefaultLeaseTTL:    time.Hour,
		MaxLeaseTTL:        24 * time.Hour,
		Logger:             logger,
	})
	if err != nil {
		return nil, "", err
	}
	ctx := namespace.RootContext(context.Background())
	shares := &vault.SealConfig{SecretShares: 1, SecretThreshold: 1}
	made, err := core.Initialize(ctx, &vault.InitParams{BarrierConfig: shares})
	if err != nil {
		return nil, "", err
	}
	if _, err := core.Unseal(made.SecretShares[0]); err != nil {
		return nil, "", err
	}
	return core, made.RootToken, nil
}

func serve() error {
	core, token, err := start()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	handler := vaulthttp.Handler.Handler(&vault.HandlerProperties{Core: core, ListenerConfig: &configutil.Listener{}})
	line, err := json.Marshal(map[string]string{"address": "http://" + listener.Addr().String(), "token": token})
	if err != nil {
		return err
	}
	fmt.Println(string(line))
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return http.Serve(listener, handler)
}

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
