package option

import (
	"regexp"
	"strings"
)

// Image says whether and how EC2 Image Builder makes machine images with the agent.
type Image struct {
	// Base is the parent image, as Image Builder takes it; empty: no images.
	Base string
	// Kind is the base's kind of package: "deb" or "rpm".
	Kind string
	// Architecture is ARM64 or X86_64: of the machines, not of the functions.
	Architecture string
	// Package is the agent's: a file, or an https URL. SHA256 is its sum; of a file the
	// app computes it.
	Package, SHA256 string
	// Scripts is the folder of install.sh and check.sh; the app knows it.
	Scripts      string
	InstanceType string
	// Schedule is a cron expression of Image Builder's; empty: when it is told to.
	Schedule string
	// Subnet and SecurityGroups are where builds run; empty: the default VPC.
	Subnet         string
	SecurityGroups []string
	// Accounts may use the images; Regions get copies.
	Accounts, Regions []string
	// Keep is how many images are kept.
	Keep int
	// Cluster is the one that instances of the images register in.
	Cluster string
	// Policies are ARNs of managed policies that build instances get as well.
	Policies []string
}

// URL says whether the package is fetched from a URL.
func (i Image) URL() bool { return strings.HasPrefix(i.Package, "https://") }

// bases are distributions by name: kind of package, and the parameter that names the
// newest image, with ARCH in it as the distribution calls the architecture.
var bases = map[string]struct{ kind, parameter, x86, arm string }{
	"al2023":      {"rpm", "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-ARCH", "x86_64", "arm64"},
	"debian12":    {"deb", "/aws/service/debian/release/12/latest/ARCH", "amd64", "arm64"},
	"debian13":    {"deb", "/aws/service/debian/release/13/latest/ARCH", "amd64", "arm64"},
	"ubuntu24.04": {"deb", "/aws/service/canonical/ubuntu/server/24.04/stable/current/ARCH/hvm/ebs-gp3/ami-id", "amd64", "arm64"},
}

var (
	ownBase    = regexp.MustCompile(`^(ami-[0-9a-f]{8,17}|ssm:[A-Za-z0-9_.:/-]{1,1000}|arn:aws[a-z-]*:imagebuilder:[A-Za-z0-9:./-]+)$`)
	sum256     = regexp.MustCompile(`^[0-9a-f]{64}$`)
	cron       = regexp.MustCompile(`^cron\([^()]{1,200}\)$`)
	typeName   = regexp.MustCompile(`^[a-z0-9-]+\.[a-z0-9-]+$`)
	accountID  = regexp.MustCompile(`^[0-9]{12}$`)
	regionName = regexp.MustCompile(`^[a-z]{2,}(-[a-z]+)+-[0-9]+$`)
	subnetID   = regexp.MustCompile(`^subnet-([0-9a-f]{8}|[0-9a-f]{17})$`)
	groupID    = regexp.MustCompile(`^sg-([0-9a-f]{8}|[0-9a-f]{17})$`)
	cluster    = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,255}$`)
)

// image reads the keys that begin with "image".
func (r *reader) image(local bool) Image {
	i := Image{
		Base: r.text("image", ""), Architecture: r.oneOf("imageArchitecture", X86_64, ARM64, X86_64),
		Package: r.text("imagePackage", ""), SHA256: strings.ToLower(r.text("imageSHA256", "")),
		InstanceType: r.text("imageInstanceType", ""), Schedule: r.text("imageSchedule", ""),
		Subnet: r.text("imageSubnet", ""), SecurityGroups: r.list("imageSecurityGroups"),
		Accounts: r.list("imageAccounts"), Regions: r.list("imageRegions"), Policies: r.list("imagePolicies"),
		Keep: r.number("imageKeep", 5, 1, 1000), Cluster: r.text("imageCluster", "default"),
	}
	known, named := bases[i.Base]
	switch {
	case i.Base == "" || i.Base == "false":
		for _, key := range r.known {
			if strings.HasPrefix(key, "image") && key != "image" && r.raw(key) != "" {
				r.fault(key, "needs %simage: which base image there is to be one from", Prefix)
			}
		}
		return Image{}
	case named:
		arch := known.x86
		if i.Architecture == ARM64 {
			arch = known.arm
		}
		i.Base, i.Kind = "ssm:"+strings.Replace(known.parameter, "ARCH", arch, 1), known.kind
	case !ownBase.MatchString(i.Base):
		r.fault("image", "must be false, al2023, debian12, debian13 or ubuntu24.04, or an image of yours: ami-…, ssm:/a/parameter, or Image Builder's ARN")
	}
	if local {
		r.fault("image", "is for an AWS account: no emulator has EC2 Image Builder (one refuses the template, another says that it has made what it has not)")
	}
	r.imagePackage(&i)
	if i.InstanceType == "" {
		if i.InstanceType = "t3.small"; i.Architecture == ARM64 {
			i.InstanceType = "t4g.small"
		}
	}
	matches := func(key string, form *regexp.Regexp, what string, values ...string) {
		for _, v := range values {
			if v != "" && !form.MatchString(v) {
				r.fault(key, "%.80q is not %s", v, what)
			}
		}
	}
	matches("imageInstanceType", typeName, "an instance type such as t3.small", i.InstanceType)
	matches("imageSchedule", cron, "cron(…)", i.Schedule)
	matches("imageSubnet", subnetID, "a subnet's id", i.Subnet)
	matches("imageSecurityGroups", groupID, "a security group's id", i.SecurityGroups...)
	matches("imageAccounts", accountID, "an account's number", i.Accounts...)
	matches("imageRegions", regionName, "a region", i.Regions...)
	matches("imageCluster", cluster, "a cluster's name: 1 to 255 letters, digits, _ and -", i.Cluster)
	for _, arn := range i.Policies {
		if !strings.HasPrefix(arn, "arn:") || !strings.Contains(arn, ":policy/") {
			r.fault("imagePolicies", "must be ARNs of managed policies, separated by commas")
			break
		}
	}
	if (i.Subnet == "") != (len(i.SecurityGroups) == 0) {
		r.fault("imageSubnet", "and imageSecurityGroups go together: both, or neither for the default VPC")
	}
	return i
}

// imagePackage judges the package, and knows the kind of a base of yours by it.
func (r *reader) imagePackage(i *Image) {
	kind := ""
	for _, k := range []string{"deb", "rpm"} {
		if strings.HasSuffix(i.Package, "."+k) {
			kind = k
		}
	}
	switch {
	case i.Package == "" && i.Kind == "":
		r.fault("imagePackage", "must be named with a base image of yours: a .deb or an .rpm")
	case i.Package != "" && kind == "":
		r.fault("imagePackage", "must be a .deb or an .rpm")
	case i.Package != "" && i.Kind != "" && kind != i.Kind:
		r.fault("imagePackage", "must be a .%s for this base image", i.Kind)
	case strings.Contains(i.Package, "://") && !i.URL():
		r.fault("imagePackage", "must be a file or an https URL")
	case i.URL() && !sum256.MatchString(i.SHA256):
		r.fault("imageSHA256", "must be the package's SHA-256, 64 hex digits, where imagePackage is a URL")
	case !i.URL() && i.SHA256 != "":
		r.fault("imageSHA256", "is for a package at a URL; of a file it is computed")
	}
	if i.Kind == "" {
		i.Kind = kind
	}
}
