//go:build emulator

package role_test

import (
	"crypto/rand"
	"encoding/json"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/longshore-run/longshore/edgeagent/internal/role"
	"github.com/longshore-run/longshore/test/emulator"
)

func TestMain(m *testing.M) { emulator.Main(m) }

func TestCredentials_AreThoseOfTheRoleUnderTheTasksName(t *testing.T) {
	config := emulator.Shared(t).AWSConfig()
	trust, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": []any{
		map[string]any{"Effect": "Allow", "Principal": map[string]any{"AWS": "*"}, "Action": "sts:AssumeRole"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	made, err := iam.NewFromConfig(config).CreateRole(t.Context(), &iam.CreateRoleInput{
		RoleName: aws.String("execution-" + rand.Text()), AssumeRolePolicyDocument: aws.String(string(trust)),
	})
	if err != nil {
		t.Fatal(err)
	}
	sessions := role.New(sts.NewFromConfig(config), time.Now)
	got, err := sessions.Credentials(t.Context(), *made.Role.Arn, "0123456789abcdef0123456789abcdef")
	if err != nil || got.SessionToken == "" || time.Until(got.Expires) < 50*time.Minute {
		t.Fatalf("a session until %s, %v", got.Expires, err)
	}
	if again, err := sessions.Credentials(t.Context(), *made.Role.Arn, "0123456789abcdef0123456789abcdef"); err != nil || again.AccessKeyID != got.AccessKeyID {
		t.Errorf("asked for twice, %v", err)
	}
}
