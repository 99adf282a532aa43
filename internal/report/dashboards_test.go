package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// schemaVersion of the dashboards: Grafana 11 and later read it without a migration that could go wrong.
const schemaVersion = 39

// dashboard is what is read of a file of deploy/grafana.
type dashboard struct {
	Title, UID    string
	SchemaVersion int
	Links         []hyperlink
	Templating    struct {
		List []struct{ Name, Type, Definition string }
	}
	Panels []struct {
		ID                       int
		Type, Title, Description string
		Datasource               source
		GridPos                  struct{ X, Y, W, H int }
		FieldConfig              struct{ Defaults struct{ Links []hyperlink } }
		Targets                  []struct {
			Datasource         source
			Expr, LegendFormat string
		}
	}
}

type (
	hyperlink struct{ Title, URL string }
	source    struct{ Type, UID string }
)

// dashboards are those of deploy/grafana, each named as its file is.
func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	files, err := filepath.Glob("../../deploy/grafana/*.json")
	if err != nil || len(files) < 2 {
		t.Fatalf("dashboards: %v, %v", files, err)
	}
	all := map[string]dashboard{}
	for _, file := range files {
		var d dashboard
		read(t, file, json.Unmarshal, &d)
		if name := strings.TrimSuffix(filepath.Base(file), ".json"); d.UID != name {
			t.Errorf("%s: uid %s", file, d.UID)
		}
		all[d.UID] = d
	}
	return all
}

func (d dashboard) variables() map[string]bool {
	all := map[string]bool{}
	for _, v := range d.Templating.List {
		all[v.Name] = true
	}
	return all
}

var (
	aPath     = regexp.MustCompile(`^/d/([a-z-]+)/([a-z-]+)\?(.+)$`)
	aVariable = regexp.MustCompile(`\$\{?([a-z][a-zA-Z]*)\b`)
	aField    = regexp.MustCompile(`\$\{__(?:field\.labels|data\.fields)\.([a-z_]+)\}`)
)

// follow says what is wrong with a link of a dashboard: it leads to a dashboard and a panel that are there, sets
// variables that are declared there, and takes their values from what the place that it stands in has.
func follow(link, from string, labels map[string]bool, all map[string]dashboard) (problems []string) {
	path := aPath.FindStringSubmatch(link)
	if path == nil {
		return []string{"no path of a dashboard"}
	}
	to, there := all[path[1]]
	if !there || path[2] != path[1] {
		return []string{"no dashboard " + path[1]}
	}
	set := map[string]bool{}
	for _, part := range strings.Split(path[3], "&") {
		name, value, assigned := strings.Cut(part, "=")
		variable, is := strings.CutPrefix(name, "var-")
		switch {
		case part == "${__url_time_range}":
		case part == "${__all_variables}":
			set = to.variables()
			if from != to.UID {
				problems = append(problems, "all variables of another dashboard")
			}
		case is && assigned && to.variables()[variable]:
			set[variable] = true
		case name == "viewPanel" && assigned && slices.ContainsFunc(to.panelIDs(),
			func(id int) bool { return fmt.Sprint(id) == value }):
		default:
			problems = append(problems, "dashboard "+to.UID+" has no "+part)
		}
		for _, v := range aVariable.FindAllStringSubmatch(value, -1) {
			if !all[from].variables()[v[1]] {
				problems = append(problems, "dashboard "+from+" has no variable "+v[1])
			}
		}
		for _, f := range aField.FindAllStringSubmatch(value, -1) {
			if !labels[f[1]] {
				problems = append(problems, "there is no label "+f[1])
			} else if f[1] != variable {
				problems = append(problems, variable+" is set to the "+f[1])
			}
		}
	}
	if to.UID == "plimsoll-container" && !(set["namespace"] && set["pod"] && set["container"]) {
		problems = append(problems, "the container is not told")
	}
	return problems
}

func (d dashboard) panelIDs() (list []int) {
	for _, p := range d.Panels {
		list = append(list, p.ID)
	}
	return list
}

// TestDashboardsAreWhole: panels have room of their own, say what they show, and use variables that are declared.
func TestDashboardsAreWhole(t *testing.T) {
	for uid, d := range dashboards(t) {
		if d.SchemaVersion != schemaVersion || d.Title == "" {
			t.Errorf("%s: schema version %d, title %q", uid, d.SchemaVersion, d.Title)
		}
		taken, ids := map[[2]int]string{}, map[int]bool{}
		known := maps.Clone(d.variables())
		for _, p := range d.Panels {
			where := fmt.Sprintf("%s: %q", uid, p.Title)
			if ids[p.ID] || p.ID == 0 || p.Title == "" || !strings.HasSuffix(p.Description, ".") ||
				len(p.Targets) == 0 {
				t.Errorf("%s: id %d, description %q, %d queries", where, p.ID, p.Description, len(p.Targets))
			}
			ids[p.ID] = true
			g := p.GridPos
			if g.X < 0 || g.W <= 0 || g.H <= 0 || g.X+g.W > 24 {
				t.Errorf("%s: it stands at %+v", where, g)
			}
			for x := g.X; x < g.X+g.W; x++ {
				for y := g.Y; y < g.Y+g.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" && other != p.Title {
						t.Fatalf("%s: it stands on %q", where, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
			for _, target := range p.Targets {
				for _, s := range []source{p.Datasource, target.Datasource} {
					if s != (source{"prometheus", "${datasource}"}) {
						t.Errorf("%s: data source %+v", where, s)
					}
				}
				for _, v := range aVariable.FindAllStringSubmatch(target.Expr, -1) {
					if !known[v[1]] {
						t.Errorf("%s: no variable %s: %s", where, v[1], target.Expr)
					}
				}
			}
		}
		for _, v := range d.Templating.List {
			for _, used := range aVariable.FindAllStringSubmatch(v.Definition, -1) {
				if !known[used[1]] {
					t.Errorf("%s: variable %s uses %s", uid, v.Name, used[1])
				}
			}
		}
	}
}

// TestAlertToThrottlesInThreeClicks: from an alert, and from each curve of a container, there is a way to that
// container; there the first panel is its use against its limit, and a click in it leads to the throttles.
func TestAlertToThrottlesInThreeClicks(t *testing.T) {
	all := dashboards(t)
	shown := map[string]bool{"namespace": true, "pod": true, "container": true}
	for uid, d := range all {
		for _, l := range d.Links {
			for _, problem := range follow(l.URL, uid, nil, all) {
				t.Errorf("%s: link %q: %s: %s", uid, l.Title, problem, l.URL)
			}
		}
		for _, p := range d.Panels {
			ofContainers := p.Type == "table" || strings.Contains(p.Targets[0].LegendFormat, "{{container}}")
			labels := map[string]bool{}
			if ofContainers {
				labels = shown
			}
			links := p.FieldConfig.Defaults.Links
			if ofContainers && !slices.ContainsFunc(links,
				func(l hyperlink) bool { return strings.Contains(l.URL, "/d/plimsoll-container/") }) {
				t.Errorf("%s: %q leads to no container", uid, p.Title)
			}
			for _, l := range links {
				for _, problem := range follow(l.URL, uid, labels, all) {
					t.Errorf("%s: %q: link %q: %s: %s", uid, p.Title, l.Title, problem, l.URL)
				}
			}
		}
	}
	first := all["plimsoll-container"].Panels[0]
	if first.Title != "Use against limit" || len(first.FieldConfig.Defaults.Links) == 0 {
		t.Fatalf("the first panel of a container is %q, with the links %v", first.Title,
			first.FieldConfig.Defaults.Links)
	}
	next := first.FieldConfig.Defaults.Links[0].URL
	for _, p := range all["plimsoll-container"].Panels {
		if p.Title == "Throttles" && strings.HasSuffix(next, fmt.Sprintf("&viewPanel=%d", p.ID)) {
			return
		}
	}
	t.Errorf("it leads to no throttles: %s", next)
}

// TestAlertsOfContainersLeadThere: the annotation dashboard of an alert is a path of Grafana,
// for a template of Alertmanager.
func TestAlertsOfContainersLeadThere(t *testing.T) {
	all, n := dashboards(t), 0
	alerts, _ := rules(t)
	for _, a := range alerts {
		for _, text := range a.texts {
			if !strings.HasPrefix(text, "/d/") {
				continue
			}
			n++
			for _, name := range []string{"namespace", "pod", "container"} {
				text = strings.ReplaceAll(text, "var-"+name+"={{ $labels."+name+" }}", "var-"+name+"=x")
			}
			if strings.Contains(text, "{{") {
				t.Errorf("%s: a variable is set to another label: %s", a.where, text)
				continue
			}
			for _, problem := range follow(text, "", nil, all) {
				t.Errorf("%s: %s: %s", a.where, problem, text)
			}
		}
	}
	if n < 2 {
		t.Errorf("%d alerts lead to a container", n)
	}
}

// TestBrokenLinksAreFound: each of these has something wrong.
func TestBrokenLinksAreFound(t *testing.T) {
	all := dashboards(t)
	labels := map[string]bool{"namespace": true, "pod": true, "container": true}
	const whole = "/d/plimsoll-container/plimsoll-container?var-namespace=${__field.labels.namespace}" +
		"&var-pod=${__field.labels.pod}" +
		"&var-container=${__field.labels.container}"
	if problems := follow(whole, "plimsoll", labels, all); len(problems) > 0 {
		t.Errorf("%s: %v", whole, problems)
	}
	for _, link := range []string{
		"https://grafana.example/d/plimsoll", "/d/plimsoll-pod/plimsoll-pod?var-pod=x",
		"/d/plimsoll-container/plimsoll?var-pod=x",
		strings.Replace(whole, "var-pod", "var-pods", 1), strings.Replace(whole, "labels.pod", "labels.node", 1),
		strings.Replace(whole, "labels.pod", "labels.container", 1), whole + "&viewPanel=99",
		whole + "&var-datasource=${source}",
		"/d/plimsoll-container/plimsoll-container?${__all_variables}",
		"/d/plimsoll-container/plimsoll-container?var-namespace=a",
	} {
		if len(follow(link, "plimsoll", labels, all)) == 0 {
			t.Errorf("nothing is found wrong with %s", link)
		}
	}
}
