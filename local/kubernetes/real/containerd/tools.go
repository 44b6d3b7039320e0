//go:build tools

package containerd

import _ "github.com/containerd/containerd/v2/cmd/containerd"
