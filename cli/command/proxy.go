package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/cli/internal/exit"
	"github.com/longshore-run/longshore/cli/internal/proxy"
)

const proxyAddress = "127.0.0.1:8787"

func (s *session) proxyCommand() *cobra.Command {
	var listen string
	var anywhere, quiet bool
	c := &cobra.Command{
		Use: "proxy", Short: "Let stock ECS clients call the API: re-sign their calls on loopback",
		Long: `AWS clients sign for the service ecs; the API is a Lambda Function URL, which wants
the service lambda and answers 403 otherwise. The proxy listens on this machine,
signs each call anew with the credentials of its own environment, and passes the
answer on as it comes. Client and proxy need not have the same credentials: the
client's signature is not looked at, so whoever can reach the proxy acts as you.

It therefore refuses to listen beyond loopback, unless --allow-non-loopback says
that something else (a pod, a network of its own) keeps strangers away. It turns
browsers away, and retries nothing.

GET /_longshore/health answers 200 while it could sign.`,
		Example: `  longshore proxy &
  aws ecs list-tasks --endpoint-url http://127.0.0.1:8787
  AWS_ENDPOINT_URL_ECS=http://127.0.0.1:8787 python deploy.py
  longshore proxy --listen 127.0.0.1:0 --quiet`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return s.proxy(c.Context(), listen, anywhere, quiet) },
	}
	c.Flags().StringVar(&listen, "listen", proxyAddress, "address and port; port 0 takes a free one and says it")
	c.Flags().BoolVar(&anywhere, "allow-non-loopback", false, "listen also where other machines can reach it")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "no line for each call")
	c.AddCommand(s.proxyHealth())
	return c
}

func (s *session) proxy(ctx context.Context, listen string, anywhere, quiet bool) error {
	if _, _, err := net.SplitHostPort(listen); err != nil {
		return exit.New(exit.Usage, "write ADDRESS:PORT, such as "+proxyAddress, "--listen is %q", listen)
	}
	if !anywhere && !proxy.Loopback(listen) {
		return exit.New(exit.Usage, "listen on 127.0.0.1, or add --allow-non-loopback", "whoever reaches %s would act with your credentials", listen)
	}
	c, err := s.client(ctx)
	if err != nil {
		return err
	}
	target, err := url.Parse(c.Endpoint)
	if err != nil {
		return fmt.Errorf("read the endpoint: %w", err)
	}
	var at net.ListenConfig
	listener, err := at.Listen(ctx, "tcp", listen)
	if err != nil {
		return &exit.Error{Code: exit.Failed, Text: "listen", Cause: err, Next: "choose another with --listen"}
	}
	log := slog.New(slog.NewJSONHandler(s.Err, nil))
	cfg := proxy.Config{Target: target, Region: c.AWS.Region, Credentials: c.AWS.Credentials, Now: s.Now, AnyHost: anywhere}
	if !quiet {
		cfg.Served = func(operation string, status int, took time.Duration) {
			log.Info("call", "operation", operation, "status", status, "duration", took.String())
		}
	}
	server := &http.Server{Handler: proxy.New(cfg), ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) }}
	s.note("longshore: proxy for %s on http://%s", c.Endpoint, listener.Addr())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second) // as long as a call may take
	defer cancel()
	if err := server.Shutdown(last); err != nil {
		return fmt.Errorf("end: %w", err)
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// proxyHealth asks a proxy how it is: for images without a shell.
func (s *session) proxyHealth() *cobra.Command {
	var address string
	c := &cobra.Command{
		Use: "health", Short: "Ask a running proxy whether it could sign", Example: "  longshore proxy health --url http://127.0.0.1:8787", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(c.Context(), 5*time.Second)
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, address+proxy.Health, nil)
			if err != nil {
				return exit.New(exit.Usage, "", "--url %q is no URL", address)
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				return &exit.Error{Code: exit.Failed, Text: "ask the proxy", Cause: err, Next: "does it run there?"}
			}
			defer answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				return exit.New(exit.Failed, "look at the proxy's log", "the proxy can not sign: %s", answer.Status)
			}
			return nil
		},
	}
	c.Flags().StringVar(&address, "url", "http://"+proxyAddress, "where it listens")
	return c
}
