//go:build tools

// Package prometheus names the program that is built, so that go mod keeps what it needs.
package prometheus

import _ "github.com/prometheus/prometheus/cmd/prometheus"
