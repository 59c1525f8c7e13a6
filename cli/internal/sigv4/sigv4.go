// Package sigv4 signs requests as a Lambda Function URL wants them: for the
// service lambda, whatever is called behind it. An emulator does not look at the
// service's name and AWS answers 403 to another, so the tests here are what
// holds it. Packages of the command import it.
package sigv4

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Service is the signing name of Function URLs.
const Service = "lambda"

// Sign signs a request whose body is the given one.
func Sign(ctx context.Context, credentials aws.CredentialsProvider, r *http.Request, body []byte, region string, at time.Time) error {
	if credentials == nil {
		return fmt.Errorf("sign for %s: there are no credentials", Service)
	}
	keys, err := credentials.Retrieve(ctx)
	if err != nil {
		return fmt.Errorf("sign for %s: %w", Service, err)
	}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(ctx, keys, r, hex.EncodeToString(sum[:]), Service, region, at); err != nil {
		return fmt.Errorf("sign for %s: %w", Service, err)
	}
	return nil
}

var functionURL = regexp.MustCompile(`^[a-z0-9]+\.lambda-url\.([a-z0-9-]+)\.on\.aws$`)

// Region is the region that a Function URL's host names, or "".
func Region(host string) string {
	if m := functionURL.FindStringSubmatch(host); m != nil {
		return m[1]
	}
	return ""
}
