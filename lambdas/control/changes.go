package control

// changes collects the writes of one transaction, each record once: a write of
// a record makes its check needless.
type changes struct {
	order []Record
	ops   map[Record]Op
}

func (w *changes) add(op Op, records ...Record) {
	if w.ops == nil {
		w.ops = map[Record]Op{}
	}
	for _, r := range records {
		have, known := w.ops[r]
		if !known {
			w.order = append(w.order, r)
		}
		if have != PutOp {
			w.ops[r] = op
		}
	}
}

func (w *changes) put(records ...Record)   { w.add(PutOp, records...) }
func (w *changes) check(records ...Record) { w.add(CheckOp, records...) }

// putIf writes r if it has changed and holds the commit to it otherwise.
func (w *changes) putIf(changed bool, r Record) {
	if changed {
		w.put(r)
	} else {
		w.check(r)
	}
}

func (w *changes) all() []Write {
	out := make([]Write, len(w.order))
	for i, r := range w.order {
		out[i] = Write{r, w.ops[r]}
	}
	return out
}
