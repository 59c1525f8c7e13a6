package image

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/jsonmessage"
)

// path of the static busybox; a variable of the environment points elsewhere.
const (
	busyboxPath     = "/bin/busybox"
	busyboxVariable = "LONGSHORE_BUSYBOX"
)

// needed are the applets without which the examples and tests do not run.
var needed = []string{"cat", "echo", "false", "httpd", "kill", "nc", "sh", "sleep", "true", "wget"}

// buildLocally imports an image made of this machine's static busybox and nothing else.
func buildLocally(ctx context.Context, api *client.Client, ref string) error {
	file := busyboxPath
	if v := os.Getenv(busyboxVariable); v != "" {
		file = v
	}
	applets, err := inspectBusybox(ctx, file)
	if err != nil {
		return fmt.Errorf("build %s: %w; mend: apt-get install -y busybox-static", ref, err)
	}
	root, err := rootFS(file, applets)
	if err != nil {
		return fmt.Errorf("build %s: %w", ref, err)
	}
	body, err := api.ImageImport(ctx, image.ImportSource{Source: root, SourceName: "-"}, ref, image.ImportOptions{
		Message: "made of this machine's busybox-static by the Longshore tests",
		Changes: []string{`CMD ["sh"]`, "ENV PATH=/bin", "LABEL longshore.test=image"},
	})
	if err != nil {
		return fmt.Errorf("import %s: %w", ref, err)
	}
	defer body.Close()
	var out bytes.Buffer
	if err := jsonmessage.DisplayJSONMessagesStream(body, &out, 0, false, nil); err != nil {
		return fmt.Errorf("import %s: %w", ref, err)
	}
	return nil
}

// inspectBusybox returns the applets of a busybox that runs without any library.
func inspectBusybox(ctx context.Context, file string) ([]string, error) {
	f, err := elf.Open(file)
	if err != nil {
		return nil, fmt.Errorf("there is no static busybox: %w", err)
	}
	defer f.Close()
	if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return nil, fmt.Errorf("%s is not static", file)
	}
	list, err := exec.CommandContext(ctx, file, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("list the applets of %s: %w", file, err)
	}
	applets := strings.Fields(string(list))
	lacking := slices.DeleteFunc(slices.Clone(needed), func(a string) bool { return slices.Contains(applets, a) })
	if len(lacking) > 0 {
		return nil, fmt.Errorf("%s lacks the applets %s", file, strings.Join(lacking, " "))
	}
	return applets, nil
}

// rootFS is the image's whole file system as a tar archive.
func rootFS(busybox string, applets []string) (*bytes.Buffer, error) {
	binary, err := os.ReadFile(busybox)
	if err != nil {
		return nil, fmt.Errorf("read busybox: %w", err)
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	dir := func(name string, mode int64) error {
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode})
	}
	file := func(name string, mode int64, content []byte) error {
		err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))})
		if err == nil {
			_, err = w.Write(content)
		}
		return err
	}
	errs := []error{
		dir("bin/", 0o755), dir("etc/", 0o755), dir("root/", 0o700), dir("tmp/", 0o1777), dir("var/", 0o755), dir("var/www/", 0o755),
		file("etc/passwd", 0o644, []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n")),
		file("etc/group", 0o644, []byte("root:x:0:\nnogroup:x:65534:\n")),
		file("bin/busybox", 0o755, binary),
	}
	for _, a := range applets {
		if a != "busybox" {
			errs = append(errs, w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + a, Linkname: "busybox", Mode: 0o777}))
		}
	}
	if err := errors.Join(append(errs, w.Close())...); err != nil {
		return nil, fmt.Errorf("write image archive: %w", err)
	}
	return &buf, nil
}
