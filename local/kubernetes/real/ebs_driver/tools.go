//go:build tools

package ebs_driver

import _ "github.com/kubernetes-sigs/aws-ebs-csi-driver/cmd"
