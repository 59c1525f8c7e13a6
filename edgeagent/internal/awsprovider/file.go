package awsprovider

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/longshore-run/longshore/shared/fault"
)

const (
	// maxFile bounds an environment file: more is not meant to be one.
	maxFile = 1 << 20
	// maxLine is that of ECS's agent.
	maxLine = 64 << 10
)

// readFile reads an environment file, which an ARN of S3 names.
func readFile(ctx context.Context, config aws.Config, arn string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	parts := strings.SplitN(arn, ":", 6)
	bucket, key, ok := strings.Cut(parts[len(parts)-1], "/")
	if len(parts) != 6 || parts[2] != "s3" || !ok || bucket == "" || key == "" {
		return nil, fault.New(fault.Invalid, "%s: it must be the ARN of an S3 object: arn:PARTITION:s3:::BUCKET/KEY.env", arn)
	}
	body, err := download(ctx, config, bucket, key)
	if err != nil {
		return nil, classify(err, arn)
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, maxFile+1))
	if err != nil {
		return nil, classify(err, arn)
	}
	if len(text) > maxFile {
		return nil, fault.New(fault.Invalid, "%s: it is larger than %d bytes", arn, maxFile)
	}
	read, err := variables(string(text))
	return read, fault.Wrap(fault.Invalid, err, "%s", arn)
}

// download asks for an object, a second time where its bucket is if that is in
// another region: the first answer says which.
func download(ctx context.Context, config aws.Config, bucket, key string) (io.ReadCloser, error) {
	region := config.Region
	for try := 1; ; try++ {
		client := s3.NewFromConfig(config, func(o *s3.Options) {
			o.Region = region
			o.DisableLogOutputChecksumValidationSkipped = true
			o.UsePathStyle = o.BaseEndpoint != nil // what is not AWS often has no name for each bucket
		})
		out, err := client.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key})
		if err == nil {
			return out.Body, nil
		}
		there := ""
		if r, ok := errors.AsType[*awshttp.ResponseError](err); ok && r.Response != nil {
			there = r.Response.Header.Get("X-Amz-Bucket-Region")
		}
		if try > 1 || there == "" || there == region {
			return nil, err
		}
		region = there
	}
}

// variables reads an environment file by the rules of ECS's agent: a variable a line,
// NAME=VALUE, nothing around either taken off; a line that begins with # is a comment, and
// one without a = or with nothing on a side of it is passed over. Of a variable that
// comes twice the last counts. Errors say nothing of what the file holds.
func variables(text string) (map[string]string, error) {
	all := map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, maxLine)
	n := 0
	for lines.Scan() {
		n++
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		switch {
		case !ok || name == "" || value == "":
		case strings.ContainsRune(line, 0):
			return nil, fmt.Errorf("line %d has a zero byte, which no variable can hold", n)
		default:
			all[name] = value
		}
	}
	if lines.Err() != nil {
		return nil, fmt.Errorf("line %d is longer than %d bytes", n+1, maxLine)
	}
	return all, nil
}
