package parallelism

import (
	"fmt"
	"strings"
)

// jvmDegree is what Runtime.availableProcessors says.
func (p Process) jvmDegree() degree {
	o := p.options()
	if o.processors > 0 {
		return degree{threads: o.processors, from: "-XX:ActiveProcessorCount in its " + o.where}
	}
	switch {
	case o.opaque != "":
		return unknown("%s", o.opaque)
	case p.Env == nil:
		return unknown(noEnv)
	case p.Args == nil:
		return unknown(noArgs)
	case p.CPUs == 0:
		return unknown(noCPUs)
	case o.blind:
		return degree{threads: p.CPUs, from: allCPUs + " (-XX:-UseContainerSupport: it does not look at its limit)"}
	case p.Nested:
		return unknown("it is in a group inside the container's, and which limit it reads there depends on its version")
	}
	if n := roundedUp(p.Limit); n > 0 && n < p.CPUs {
		return degree{threads: n, from: fmt.Sprintf("its limit of %.2f CPUs, rounded up", p.Limit)}
	}
	return degree{threads: p.CPUs, from: allCPUs}
}

// options are what a JVM was told about processors.
type options struct {
	processors int    // 0: nothing
	where      string // processors was said
	blind      bool   // container support is off
	opaque     string // why later options than these may not be known
}

// options are read in the JVM's order, in which the last one counts: JAVA_TOOL_OPTIONS, the launcher's JDK_JAVA_OPTIONS
// and command line, _JAVA_OPTIONS.
func (p Process) options() options {
	var o options
	o.add("JAVA_TOOL_OPTIONS", words(p.Env["JAVA_TOOL_OPTIONS"]))
	if p.Embedded {
		o.opaque = "another program than java has started it, whose way to give options is not known"
	} else {
		o.launcher("JDK_JAVA_OPTIONS", words(p.Env["JDK_JAVA_OPTIONS"]))
		if len(p.Args) > 0 {
			o.launcher("command line", p.Args[1:])
		}
	}
	o.add("_JAVA_OPTIONS", words(p.Env["_JAVA_OPTIONS"]))
	return o
}

// launcher adds the options before the name of the class, the module or the archive: what follows is the program's.
func (o *options) launcher(where string, args []string) {
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case takesValue(arg):
			i++
		case strings.HasPrefix(arg, "@") && !strings.HasPrefix(arg, "@@"):
			o.hide("it reads options from a file (" + where + ": @...)")
		case arg == "-jar" || arg == "-m" || arg == "--module" || !strings.HasPrefix(arg, "-"):
			return
		default:
			o.add(where, args[i:i+1])
		}
	}
}

// takesValue lists the launcher's options whose value is the next argument (java(1)).
func takesValue(arg string) bool {
	switch arg {
	case "-cp", "-classpath", "--class-path", "-p", "--module-path", "--upgrade-module-path", "--add-modules",
		"--limit-modules",
		"--add-exports", "--add-opens", "--add-reads", "--patch-module", "--enable-native-access", "--source", "-d",
		"--describe-module":
		return true
	}
	return false
}

func (o *options) add(where string, args []string) {
	for _, arg := range args {
		switch text, ok := strings.CutPrefix(arg, "-XX:"); {
		case !ok:
		case text == "-UseContainerSupport":
			o.blind = true
		case text == "+UseContainerSupport":
			o.blind = false
		case strings.HasPrefix(text, "ActiveProcessorCount="):
			// The JVM takes -1 for "not said", and does not start with what is no number.
			o.processors, o.where, o.opaque = count(strings.TrimPrefix(text, "ActiveProcessorCount=")), where, ""
		case strings.HasPrefix(text, "Flags="), strings.HasPrefix(text, "VMOptionsFile="):
			o.hide("it reads options from a file (" + where + ": -XX:" + text[:strings.Index(text, "=")] + ")")
		}
	}
}

// hide forgets what was said before options that are not known.
func (o *options) hide(why string) { o.processors, o.opaque = 0, why }

// words splits a variable as the JVM does: at white space outside of quotation marks (Arguments::parse_options_buffer).
func words(text string) []string {
	var list []string
	var word strings.Builder
	inWord, quote := false, rune(0)
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, inWord = r, true
		case quote == 0 && strings.ContainsRune(" \t\n\r\v\f", r):
			if inWord {
				list = append(list, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if inWord {
		list = append(list, word.String())
	}
	return list
}
