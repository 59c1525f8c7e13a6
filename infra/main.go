// Command infra is the CDK app: it compiles the functions, reads the context
// and synthesizes the stack. `cdk` runs it; cdk.json says how.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"github.com/longshore-run/longshore/infra/artifact"
	"github.com/longshore-run/longshore/infra/option"
	"github.com/longshore-run/longshore/infra/stack"
)

func main() {
	defer jsii.Close()
	if err := run(awscdk.NewApp(&awscdk.AppProps{AnalyticsReporting: jsii.Bool(false)})); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			fmt.Fprintln(os.Stderr, "longshore:", line)
		}
		jsii.Close()
		os.Exit(1)
	}
}

func run(app awscdk.App) error {
	given, _ := app.Node().GetAllContext(nil).(map[string]any)
	o, err := option.Read(given, runtime.GOARCH)
	if err != nil {
		return err
	}
	if err := code(o); err != nil {
		return err
	}
	if err := pack(&o); err != nil {
		return err
	}
	stack.New(app, o)
	app.Synth(nil)
	return nil
}

// pack names the scripts and the package that machine images get, where any are made, and its sum.
func pack(o *option.Options) (err error) {
	i := &o.Image
	i.Scripts = filepath.Join("packaging", "image")
	if i.Base == "" || i.URL() {
		return nil
	}
	if i.Package == "" {
		goarch := map[string]string{option.ARM64: "arm64", option.X86_64: "amd64"}[i.Architecture]
		if i.Package, err = artifact.Package(o.Dist, i.Kind, goarch); err != nil {
			return err
		}
	}
	i.SHA256, err = artifact.Sum(i.Package)
	return err
}

// code has the functions' binaries ready: compiled here, unless the caller has
// done so and says it.
func code(o option.Options) error {
	b := artifact.Builder{Root: ".", Dist: o.Dist, GOARCH: o.GOARCH(), Now: time.Now,
		Progress: func(text string) { fmt.Fprint(os.Stderr, text) }}
	var functions []string
	for _, f := range stack.Functions() {
		if c := stack.Code(f); !slices.Contains(functions, c) {
			functions = append(functions, c)
		}
	}
	if o.Build && os.Getenv("LONGSHORE_BUILD") != "false" {
		return b.Build(context.Background(), functions...)
	}
	if missing := b.Missing(functions...); len(missing) > 0 {
		return fmt.Errorf("%s not built: run `make build`, or drop -c longshore:build=false", strings.Join(missing, ", "))
	}
	return nil
}
