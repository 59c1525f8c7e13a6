package option_test

import (
	"strings"
	"testing"

	"github.com/longshore-run/longshore/infra/option"
)

func TestImage_BasesAreKnownByNameOrBroughtAlong(t *testing.T) {
	sum := strings.Repeat("0a", 32)
	for _, c := range []struct {
		context              map[string]any
		base, kind, instance string
	}{
		{map[string]any{}, "", "", ""},
		{map[string]any{"longshore:image": "false"}, "", "", ""},
		{map[string]any{"longshore:image": "al2023"}, "ssm:/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64", "rpm", "t3.small"},
		{map[string]any{"longshore:image": "debian12", "longshore:imageArchitecture": "arm64"}, "ssm:/aws/service/debian/release/12/latest/arm64", "deb", "t4g.small"},
		{map[string]any{"longshore:image": "ubuntu24.04"}, "ssm:/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id", "deb", "t3.small"},
		{map[string]any{"longshore:image": "ami-0123456789abcdef0", "longshore:imagePackage": "https://example.org/a.rpm", "longshore:imageSHA256": strings.ToUpper(sum)}, "ami-0123456789abcdef0", "rpm", "t3.small"},
		{map[string]any{"longshore:image": "ssm:/golden/base", "longshore:imagePackage": "dist/a.deb", "longshore:imageInstanceType": "m7g.large"}, "ssm:/golden/base", "deb", "m7g.large"},
	} {
		o, err := option.Read(c.context, "amd64")
		if err != nil {
			t.Errorf("%v: %v", c.context, err)
			continue
		}
		if i := o.Image; i.Base != c.base || i.Kind != c.kind || i.InstanceType != c.instance || i.SHA256 != "" && i.SHA256 != sum {
			t.Errorf("%v: %+v", c.context, i)
		}
	}
}

func TestImage_FaultsNameTheirKeyAndWhatIsAllowed(t *testing.T) {
	for _, c := range []struct {
		key, value, want string
	}{
		{"image", "windows", "must be false, al2023, debian12, debian13 or ubuntu24.04"},
		{"image", "true", "must be false, al2023"},
		{"imageArchitecture", "amd64", "must be one of arm64, x86_64"},
		{"imagePackage", "agent.deb", "must be a .rpm for this base image"},
		{"imagePackage", "agent.tar", "must be a .deb or an .rpm"},
		{"imagePackage", "http://example.org/a.rpm", "must be a file or an https URL"},
		{"imagePackage", "https://example.org/a.rpm", "64 hex digits"},
		{"imageSHA256", strings.Repeat("a", 64), "of a file it is computed"},
		{"imageInstanceType", "big", "is not an instance type"},
		{"imageSchedule", "daily", "is not cron(…)"},
		{"imageSubnet", "subnet-0123456789abcdef0", "go together"},
		{"imageSecurityGroups", "mine", "is not a security group's id"},
		{"imageAccounts", "42", "is not an account's number"},
		{"imageRegions", "Ireland", "is not a region"},
		{"imageKeep", "0", "must be a number from 1 to 1000"},
		{"imageCluster", "a'; reboot; '", "is not a cluster's name"},
		{"imagePolicies", "admin", "must be ARNs of managed policies"},
	} {
		context := map[string]any{"longshore:image": "al2023", "longshore:" + c.key: c.value}
		_, err := option.Read(context, "amd64")
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "context longshore:image") {
			t.Errorf("%s=%s: %v", c.key, c.value, err)
		}
	}
	if _, err := option.Read(map[string]any{"longshore:image": "al2023", "longshore:local": "true"}, "amd64"); err == nil || !strings.Contains(err.Error(), "no emulator has") {
		t.Errorf("on an emulator: %v", err)
	}
	for key, want := range map[string]string{"imageKeep": "needs longshore:image", "imagePackage": "needs longshore:image"} {
		if _, err := option.Read(map[string]any{"longshore:" + key: "7"}, "amd64"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s without image: %v", key, err)
		}
	}
	if _, err := option.Read(map[string]any{"longshore:image": "ami-0123456789abcdef0"}, "amd64"); err == nil || !strings.Contains(err.Error(), "imagePackage") {
		t.Errorf("a base of one's own without a package: %v", err)
	}
}
