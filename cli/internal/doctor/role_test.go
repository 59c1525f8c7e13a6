package doctor

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/longshore-run/longshore/internal/transport"
)

const theAgent = "arn:aws:iam::000000000000:role/Longshore-Agent"

func TestJudgeRole_GoesByWhoMayTakeIt(t *testing.T) {
	const of = `{"Version":"2012-10-17","Statement":`
	for policy, want := range map[string]State{
		of + `[` + Trust(theAgent) + `]}`: OK,
		of + Trust(theAgent) + `}`:        OK,
		of + `[{"Effect":"Allow","Principal":{"Service":"ecs-tasks.amazonaws.com"},"Action":"sts:AssumeRole"},{"Effect":"Allow","Principal":{"AWS":["x","` + theAgent + `"]},"Action":["sts:AssumeRole","sts:TagSession"]}]}`: OK,
		of + `[{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::000000000000:root"},"Action":"sts:AssumeRole"}]}`:                                                                                                           OK,
		of + `[{"Effect":"Allow","Principal":"*","Action":"sts:AssumeRole"}]}`:                                                                                                                                                OK,
		of + `[]}`: Warn,
		``:         Warn,
		of + `[` + Trust(theAgent+"-of-another") + `]}`:                                                          Warn,
		of + `[{"Effect":"Allow","Principal":{"Service":"ecs-tasks.amazonaws.com"},"Action":"sts:AssumeRole"}]}`: Warn,
		of + `[{"Effect":"Deny","Principal":{"AWS":"` + theAgent + `"},"Action":"sts:AssumeRole"}]}`:             Warn,
		of + `[{"Effect":"Allow","Principal":{"AWS":"` + theAgent + `"},"Action":"sts:TagSession"}]}`:            Warn,
	} {
		all := judgeRole("job", policy, theAgent)
		expect(t, all, want)
		if want == Warn {
			expect(t, all, want, Trust(theAgent))
		}
	}
}

func somebody(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "A", SecretAccessKey: "S"}, nil
}

// known answers IAM's two questions about roles, a page each.
func known(t *testing.T, byARN map[string]string) aws.Config {
	role := func(arn string) string {
		name := arn[strings.LastIndexByte(arn, '/')+1:]
		return fmt.Sprintf("<Path>/</Path><RoleName>%s</RoleName><RoleId>AROAX</RoleId><Arn>%s</Arn><CreateDate>2026-01-01T00:00:00Z</CreateDate><AssumeRolePolicyDocument>%s</AssumeRolePolicyDocument>",
			name, arn, url.QueryEscape(byARN[arn]))
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		if r.Form.Get("Action") == "GetRole" {
			for arn := range byARN {
				if strings.HasSuffix(arn, "/"+r.Form.Get("RoleName")) {
					fmt.Fprintf(w, "<GetRoleResponse><GetRoleResult><Role>%s</Role></GetRoleResult></GetRoleResponse>", role(arn))
					return
				}
			}
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, "<ErrorResponse><Error><Type>Sender</Type><Code>NoSuchEntity</Code><Message>none</Message></Error></ErrorResponse>")
			return
		}
		members, after := "", r.Form.Get("Marker")
		for arn := range byARN { // one a page, so that the last is not forgotten
			if arn > after && (members == "" || role(arn) < members) && strings.HasPrefix(arn, "arn:aws:iam::000000000000:role"+r.Form.Get("PathPrefix")) {
				members = role(arn)
			}
		}
		next := ""
		if members != "" {
			_, arn, _ := strings.Cut(members, "<Arn>")
			arn, _, _ = strings.Cut(arn, "</Arn>")
			next = "<IsTruncated>true</IsTruncated><Marker>" + arn + "</Marker>"
			members = "<member>" + members + "</member>"
		}
		fmt.Fprintf(w, "<ListRolesResponse><ListRolesResult><Roles>%s</Roles>%s</ListRolesResult></ListRolesResponse>", members, next)
	}))
	t.Cleanup(s.Close)
	return aws.Config{Region: "us-east-1", BaseEndpoint: &s.URL, Credentials: aws.CredentialsProviderFunc(somebody), HTTPClient: transport.Client{HTTP: http.DefaultClient}}
}

func TestRoles_LooksAtThoseThatTasksMayHave(t *testing.T) {
	const here = "arn:aws:iam::000000000000:role/"
	trusting := `{"Statement":[` + Trust(theAgent) + `]}`
	all := map[string]string{here + "longshore/a": trusting, here + "longshore/b": trusting, here + "longshore/c": trusting, here + "other/x": `{}`, here + "job": trusting}
	look := func(list string) []Finding {
		found, err := roles(t.Context(), &Installation{AWS: known(t, all), outputs: map[string]string{"AgentRoleArn": theAgent, "TaskRoleArns": list}})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	expect(t, look(""), OK, "tasks may have no role", "longshore:taskRoles")
	expect(t, look(here+"nobody/*"), OK, "there is none yet", Trust(theAgent))
	expect(t, look(here+"longshore/*,"+here+"job"), OK, "4 of ", Trust(theAgent))
	expect(t, look("arn:aws:iam::111111111111:role/x"), OK, "arn:aws:iam::111111111111:role/x is another account's, and not looked at")
	expect(t, look(here+"longshore/*,"+here+"gone"), Warn, "role "+here+"gone is on the list")
	expect(t, look(here+"elsewhere/job"), Warn, "role "+here+"elsewhere/job is on the list") // the name is there, under another path
	expect(t, look(here+"other/*"), Warn, "role "+here+"other/x does not trust the agents")
	all[here+"longshore/c"] = `{"Statement":[]}`
	expect(t, look(here+"longshore/*"), Warn, "role "+here+"longshore/c does not trust the agents")
	expect(t, look(here+"longshore/a*"), OK, "1 of ")
}
