package emulator

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Product is which program plays AWS.
type Product string

const (
	// Ministack is the default: small, quick, with IAM.
	Ministack Product = "ministack"
	// LocalStack is the open-source runtime of LocalStack in host mode, with what
	// tools/localstack adds. It is strict about expressions, and has no IAM.
	LocalStack Product = "localstack"
)

// ProductVariable names the environment variable that chooses the product for
// options that do not.
const ProductVariable = "LONGSHORE_EMULATOR"

// lifelineStart comes before what starts either product.
//
//go:embed lifeline.py
var lifelineStart string

//go:embed start.py
var ministackStart string

//go:embed localstack.py
var localstackStart string

// program is what differs between the products.
type program struct {
	venv        string // its folder below .tools
	start       string // Python that runs it, after the lifeline
	mark        string // in its command line, and in no other's
	health      string // path that answers when it is ready
	install     string // the make target
	lazy        bool   // it loads a service when it is first asked for, which may take longer than a client waits
	environment func(p *Process) []string
}

var programs = map[Product]program{
	Ministack:  {"venv", ministackStart, "from ministack.app import main", "/_ministack/health", "tools", false, ministackEnvironment},
	LocalStack: {"localstack", localstackStart, "from localstack.runtime.main import main", "/_localstack/health", "tools-localstack", true, localstackEnvironment},
}

// chosen is the product that the options, or else the environment, ask for.
func (o Options) chosen() (Product, error) {
	name := o.Product
	if name == "" {
		name = Product(os.Getenv(ProductVariable))
	}
	if name == "" {
		name = Ministack
	}
	if _, ok := programs[name]; !ok && name != Endpoint && name != AWS {
		return "", fmt.Errorf("%s is %q; %s, %s, %s and %s are allowed", ProductVariable, name, Ministack, LocalStack, Endpoint, AWS)
	}
	return name, nil
}

func ministackEnvironment(p *Process) []string {
	port := strconv.Itoa(p.port)
	env := []string{
		"BIND_HOST=127.0.0.1",
		"GATEWAY_PORT=" + port,
		"MINISTACK_HOST=127.0.0.1",
		"MINISTACK_REGION=" + Region,
		"MINISTACK_ACCOUNT_ID=" + Account,
		"STATE_DIR=" + filepath.Join(p.opts.Dir, "state"),
		"S3_DATA_DIR=" + filepath.Join(p.opts.Dir, "s3"),
		"SFTP_ENABLED=0",
		"AWS_ENDPOINT_URL=http://127.0.0.1:" + port,
	}
	if p.opts.Auth {
		env = append(env, "AUTH=true")
	}
	if p.opts.Persist {
		env = append(env, "PERSIST_STATE=1", "S3_PERSIST=1")
	}
	return env
}

func localstackEnvironment(p *Process) []string {
	port := strconv.Itoa(p.port)
	return []string{
		"GATEWAY_LISTEN=127.0.0.1:" + port,
		"LOCALSTACK_HOST=127.0.0.1:" + port,
		"OVERRIDE_IN_DOCKER=0",
		"FILESYSTEM_ROOT=" + filepath.Join(p.opts.Dir, "localstack"),
		"DNS_ADDRESS=0",
		"DISABLE_EVENTS=1",
		"SKIP_SSL_CERT_DOWNLOAD=1",
		"PROVIDER_OVERRIDE_DYNAMODB=moto",
		"PROVIDER_OVERRIDE_DYNAMODBSTREAMS=moto",
		"LAMBDA_RUNTIME_EXECUTOR=process",
		"SQS_ENDPOINT_STRATEGY=off", // URLs as http://HOST:PORT/ACCOUNT/NAME
	}
}
