// Command terraform-provider-kura serves the provider over the plugin protocol,
// version 6. It is a client of kurad and knows no cluster.
package main

import (
	"context"
	"flag"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/kurafleet/terraform-provider-kura/provider"
)

// version is set by the linker.
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "serve for a debugger and print what TF_REATTACH_PROVIDERS must be set to")
	flag.Parse()
	err := providerserver.Serve(context.Background(), provider.New(version), providerserver.ServeOpts{
		Address: "registry.terraform.io/kurafleet/kura",
		Debug:   *debug,
	})
	if err != nil {
		log.Fatal(err)
	}
}
