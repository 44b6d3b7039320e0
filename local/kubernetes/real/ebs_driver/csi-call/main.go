// Asks a driver of volumes as Kubernetes' helpers do: csi-call <target> <service> <method>, with the request as JSON at
// the standard input. The answer is JSON, too.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	_ "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

func message(name string) (proto.Message, error) {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("csi.v1." + name))
	if err != nil {
		return nil, err
	}
	return kind.New().Interface(), nil
}

func call(target, service, method string) error {
	request, err := message(method + "Request")
	if err != nil {
		return err
	}
	answer, err := message(method + "Response")
	if err != nil {
		return err
	}
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	if err := protojson.Unmarshal(text, request); err != nil {
		return err
	}
	connection, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := connection.Invoke(ctx, "/csi.v1."+service+"/"+method, request, answer); err != nil {
		return err
	}
	out, err := protojson.Marshal(answer)
	if err != nil {
		return err
	}
	fmt.Println(string(out))
	return nil
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "csi-call <target> <service> <method>")
		os.Exit(2)
	}
	if err := call(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
