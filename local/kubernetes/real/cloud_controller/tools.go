//go:build tools

package cloud_controller

import _ "k8s.io/cloud-provider-aws/cmd/aws-cloud-controller-manager"
