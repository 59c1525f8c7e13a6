package image

import (
	"maps"
	"slices"
)

// document is the component: what a build instance does, in the terms of Image Builder's
// task executor. The build installs and forgets, validation looks at the very machine that becomes the
// image, and the test at one that was started from it.
func (p Props) document(files []file) map[string]any {
	get := func(files ...file) (steps []any) {
		steps = append(steps, bash("Folder", "mkdir -p "+folder))
		var fromS3, fromURL []any
		for _, f := range files {
			in := map[string]any{"source": f.source, "destination": f.to}
			if f.sha256 == "" {
				fromS3 = append(fromS3, in)
				continue
			}
			in["checksum"], in["algorithm"] = f.sha256, "SHA256"
			fromURL = append(fromURL, in)
		}
		steps = append(steps, map[string]any{"name": "Fetch", "action": "S3Download", "inputs": fromS3})
		if len(fromURL) > 0 {
			steps = append(steps, map[string]any{"name": "Download", "action": "WebDownload", "inputs": fromURL})
		}
		return steps
	}
	install, check, pack := files[0], files[1], files[2]
	commands := []string{"set -eu"}
	for _, name := range slices.Sorted(maps.Keys(p.Settings)) {
		commands = append(commands, "export "+name+"='"+*p.Settings[name]+"'")
	}
	commands = append(commands, "sh "+install.to+" --docker --image --sha256 "+p.Image.SHA256+" "+pack.to)
	return map[string]any{
		"name": "longshore-agent", "description": "Installs the Longshore agent and leaves no identity behind", "schemaVersion": "1.0",
		"phases": []any{
			map[string]any{"name": "build", "steps": append(get(files...), bash("Install", commands...))},
			map[string]any{"name": "validate", "steps": []any{bash("Check", "set -eu", "sh "+check.to, "rm -rf "+folder)}},
			map[string]any{"name": "test", "steps": append(get(check), bash("Check", "sh "+check.to+" --started"))},
		},
	}
}

func bash(name string, commands ...string) map[string]any {
	return map[string]any{"name": name, "action": "ExecuteBash", "inputs": map[string]any{"commands": commands}}
}
