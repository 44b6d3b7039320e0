//go:build tools

package containertoolkit

import _ "github.com/NVIDIA/nvidia-container-toolkit/cmd/nvidia-ctk"
