package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/mooring-dev/mooring/render/check"
)

// checkGitHub writes workflow commands, which become annotations beside the lines of a pull request
// (https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands).
type checkGitHub struct{}

func (checkGitHub) write(w io.Writer, r *checked) error {
	var b strings.Builder
	for _, e := range r.errorsForJSON(true) {
		b.WriteString(annotation("error", e.File, e.Line, 0, "mooring check", jsonError{Message: e.Message, Hint: e.Hint}.text()))
	}
	for _, f := range r.shown() {
		message := f.Text() + note(f.Finding)
		b.WriteString(annotation(annotationLevel(f.Level), f.file(), f.Origin.Line, f.column(), f.Code+" "+f.Subject(), oneLine(message)))
	}
	for _, g := range r.gaps {
		b.WriteString(oneLine(g.String()) + "\n")
	}
	if !r.nothing() {
		b.WriteString(checkText{}.summary(r) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func annotationLevel(level check.Level) string {
	switch level {
	case check.Info:
		return "notice"
	case check.Warning:
		return "warning"
	}
	return "error"
}

// annotation is one workflow command. A line or a column of 0 is left out.
func annotation(level, file string, line, column int, title, message string) string {
	var properties []string
	if file != "" {
		properties = append(properties, "file="+annotationProperty.Replace(file))
		if line > 0 {
			properties = append(properties, fmt.Sprintf("line=%d", line))
		}
		if line > 0 && column > 0 {
			properties = append(properties, fmt.Sprintf("col=%d", column))
		}
	}
	properties = append(properties, "title="+annotationProperty.Replace(title))
	return fmt.Sprintf("::%s %s::%s\n", level, strings.Join(properties, ","), annotationText.Replace(message))
}

// The runner decodes these again, and ends a property or a command at the bare characters.
var (
	annotationText     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	annotationProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)
