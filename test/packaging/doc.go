// Package packaging holds the tests of what `make package` makes: that deb and rpm
// have in them what they should, that their bytes depend on the source alone, and
// that machines which run systemd are installed, upgraded and cleared with them while a task
// runs. The machines are made of this one (see machine). It has no code that anybody
// may import.
package packaging
