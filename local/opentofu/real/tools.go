//go:build tools

// Package opentofu names the program that is built, so that go mod keeps what it needs.
package opentofu

import _ "github.com/opentofu/opentofu/cmd/tofu"
