package packaging

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// imageDir is the folder of the template.
func imageDir() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "packaging", "image")
}

// known are the members of the template's blocks that Packer and its amazon plugin (1.3) have,
// as far as a template like ours would use them; "!" must be there. Packer itself
// is on no registry that tests may ask, so this list stands in for `packer validate`.
var known = map[string]string{
	"packer":            "required_plugins{}",
	"required_plugins":  "amazon!",
	"variable":          "type! default description sensitive validation{}",
	"validation":        "condition! error_message!",
	"locals":            "*",
	"source":            "region! instance_type! ssh_username! ami_name! ami_users ami_regions ssh_clear_authorized_keys source_ami source_ami_filter{} metadata_options{} imds_support subnet_id vpc_id iam_instance_profile encrypt_boot tags",
	"source_ami_filter": "owners! most_recent filters!",
	"metadata_options":  "http_endpoint http_tokens http_put_response_hop_limit",
	"build":             "name sources! provisioner{}",
	"provisioner shell": "inline script scripts environment_vars execute_command",
	"provisioner file":  "source sources destination! direction",
}

// template is the file as HCL reads it.
func packer(t *testing.T) *hclsyntax.Body {
	t.Helper()
	f, diags := hclparse.NewParser().ParseHCLFile(filepath.Join(imageDir(), "longshore.pkr.hcl"))
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return f.Body.(*hclsyntax.Body)
}

// where is what known calls a block.
func where(b *hclsyntax.Block) string {
	if b.Type == "provisioner" {
		return b.Type + " " + b.Labels[0]
	}
	return b.Type
}

func TestPacker_HasOnlyMembersThatPackerKnows(t *testing.T) {
	var look func(name string, body *hclsyntax.Body)
	look = func(name string, body *hclsyntax.Body) {
		list, found := known[name]
		if !found {
			t.Errorf("block %s is not known", name)
			return
		}
		members := strings.Fields(list)
		for attr := range body.Attributes {
			if !slices.Contains(members, attr) && !slices.Contains(members, attr+"!") && list != "*" {
				t.Errorf("%s: %s is not known", name, attr)
			}
		}
		for _, m := range members {
			if must, needed := strings.CutSuffix(m, "!"); needed && body.Attributes[must] == nil {
				t.Errorf("%s: %s must be there", name, must)
			}
		}
		for _, b := range body.Blocks {
			if !slices.Contains(members, b.Type+"{}") {
				t.Errorf("%s: a block %s is not known in it", name, b.Type)
			}
			look(where(b), b.Body)
		}
	}
	var sources []string
	for _, b := range packer(t).Blocks {
		look(where(b), b.Body)
		if b.Type == "source" {
			sources = append(sources, "source."+strings.Join(b.Labels, "."))
		}
	}
	for _, b := range packer(t).Blocks {
		if b.Type != "build" {
			continue
		}
		v, diags := b.Body.Attributes["sources"].Expr.Value(nil)
		if diags.HasErrors() || plain(v) != `"`+strings.Join(sources, `","`)+`"` {
			t.Errorf("it builds %s of the sources %v; %v", plain(v), sources, diags)
		}
	}
}

// scope is what expressions of the template may speak of, with these variables given.
func scope(t *testing.T, body *hclsyntax.Body, packages string, given map[string]string) *hcl.EvalContext {
	t.Helper()
	fileset := function.New(&function.Spec{
		Params: []function.Parameter{{Name: "dir", Type: cty.String}, {Name: "pattern", Type: cty.String}}, Type: function.StaticReturnType(cty.Set(cty.String)),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			found, err := filepath.Glob(filepath.Join(args[0].AsString(), args[1].AsString()))
			if err != nil || len(found) == 0 {
				return cty.SetValEmpty(cty.String), err
			}
			var names []cty.Value
			for _, f := range found {
				names = append(names, cty.StringVal(filepath.Base(f)))
			}
			return cty.SetVal(names), nil
		},
	})
	ctx := &hcl.EvalContext{
		Functions: map[string]function.Function{"contains": stdlib.ContainsFunc, "concat": stdlib.ConcatFunc, "fileset": fileset},
		Variables: map[string]cty.Value{"path": cty.ObjectVal(map[string]cty.Value{"root": cty.StringVal(imageDir())})},
	}
	vars := map[string]cty.Value{}
	for _, b := range body.Blocks {
		if b.Type != "variable" {
			continue
		}
		name := b.Labels[0]
		kind, diags := typeexpr.TypeConstraint(b.Body.Attributes["type"].Expr)
		if diags.HasErrors() || kind != cty.String {
			t.Fatalf("variable %s: %v %v", name, kind, diags)
		}
		if v, ok := given[name]; ok {
			vars[name] = cty.StringVal(v)
		} else if d := b.Body.Attributes["default"]; d != nil {
			v, diags := d.Expr.Value(nil)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			vars[name] = v
		} else {
			t.Fatalf("variable %s has no value", name)
		}
	}
	for name := range given {
		if _, ok := vars[name]; !ok {
			t.Fatalf("there is no variable %s", name)
		}
	}
	vars["packages"] = cty.StringVal(packages)
	ctx.Variables["var"] = cty.ObjectVal(vars)
	locals := map[string]cty.Value{}
	for _, b := range body.Blocks {
		if b.Type == "locals" {
			for name, a := range b.Body.Attributes {
				v, diags := a.Expr.Value(ctx)
				if diags.HasErrors() {
					t.Fatal(diags)
				}
				locals[name] = v
			}
		}
	}
	ctx.Variables["local"] = cty.ObjectVal(locals)
	return ctx
}

// Every expression has a value, for both architectures; what comes out of it is what a build needs.
func TestPacker_ExpressionsHoldForBothArchitectures(t *testing.T) {
	packages := t.TempDir()
	for _, name := range []string{"longshore-agent-1.0.0-1.x86_64.rpm", "longshore-agent-1.0.0-1.aarch64.rpm", "longshore-agent_1.0.0_amd64.deb", "SHA256SUMS"} {
		if err := os.WriteFile(filepath.Join(packages, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for arch, want := range map[string]struct{ instance, rpm string }{"x86_64": {"t3.small", "x86_64.rpm"}, "arm64": {"t4g.small", "aarch64.rpm"}} {
		body := packer(t)
		ctx := scope(t, body, packages, map[string]string{"region": "eu-west-1", "architecture": arch, "cluster": "edge", "reports_queue_url": "https://sqs.example/r"})
		var said []string
		var look func(b *hclsyntax.Body)
		look = func(b *hclsyntax.Body) {
			for name, a := range b.Attributes {
				if name == "type" || name == "default" {
					continue
				}
				v, diags := a.Expr.Value(ctx)
				if diags.HasErrors() {
					t.Errorf("%s: %v", arch, diags)
					continue
				}
				said = append(said, name+"="+plain(v))
			}
			for _, in := range b.Blocks {
				look(in.Body)
			}
		}
		look(body)
		all := strings.Join(said, "\n")
		for _, part := range []string{
			"instance_type=" + want.instance + "\n", "condition=true", `"source.amazon-ebs.agent"`, "LONGSHORE_CLUSTER='edge'", "LONGSHORE_REPORTS_QUEUE_URL='https://sqs.example/r'",
			"install.sh --docker --image", "sh /tmp/longshore/check.sh", "http_tokens=required\n", "/SHA256SUMS", want.rpm, "ssh_clear_authorized_keys=true",
		} {
			if !strings.Contains(all+"\n", part) {
				t.Errorf("%s: no %q in\n%s", arch, part, all)
			}
		}
		if strings.Count(all, ".rpm") != 1 || strings.Contains(all, ".deb") {
			t.Errorf("%s: it brings more than its own package:\n%s", arch, all)
		}
	}
}

// plain is a value as text, a list's elements each quoted.
func plain(v cty.Value) string {
	switch {
	case v.Type() == cty.String:
		return v.AsString()
	case v.Type() == cty.Bool:
		if v.True() {
			return "true"
		}
		return "false"
	case v.Type() == cty.Number:
		return v.AsBigFloat().String()
	case v.CanIterateElements():
		var out []string
		for it := v.ElementIterator(); it.Next(); {
			_, e := it.Element()
			out = append(out, `"`+plain(e)+`"`)
		}
		return strings.Join(out, ",")
	}
	return v.GoString()
}

// What a person must replace in the cloud-init is marked, and each mark is told of.
func TestEdge_SettingsAreOnesThatTheAgentKnows(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(imageDir(), "edge.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(imageDir(), "..", "..", "docs", "agent-settings.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^ +(LONGSHORE_[A-Z_]+)=`).FindAllStringSubmatch(string(text), -1)
	if len(names) < 4 {
		t.Errorf("settings %v", names)
	}
	for _, n := range names {
		if !strings.Contains(string(page), "| `"+n[1]+"` |") {
			t.Errorf("%s is no setting", n[1])
		}
	}
}
