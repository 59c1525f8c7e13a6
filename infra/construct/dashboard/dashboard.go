// Package dashboard makes a CloudWatch dashboard of rows of graphs. What is on it
// is decided by infra/stack, which alone imports this.
package dashboard

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// Width is how many columns a row has; Height is that of a graph.
const (
	Width  = 24
	height = 6
)

// Graph is one widget: metrics over time, a query of a log, or states of alarms.
type Graph struct {
	Title string
	// Columns of Width.
	Columns int
	Metrics []awscloudwatch.IMetric
	// Stacked adds the values up.
	Stacked bool
	// Query is asked of the log groups Logs instead, one clause a line.
	Query []string
	Logs  []string
	// Alarms are shown by their state instead.
	Alarms []awscloudwatch.IAlarm
}

// Row is a heading and what stands under it.
type Row struct {
	Heading string
	Graphs  []Graph
}

// New adds a dashboard to scope.
func New(scope constructs.Construct, id, name string, rows []Row) awscloudwatch.Dashboard {
	var all [][]awscloudwatch.IWidget
	for _, r := range rows {
		all = append(all, []awscloudwatch.IWidget{awscloudwatch.NewTextWidget(&awscloudwatch.TextWidgetProps{
			Markdown: jsii.String("## " + r.Heading), Width: jsii.Number(Width), Height: jsii.Number(1),
		})})
		var row []awscloudwatch.IWidget
		for _, g := range r.Graphs {
			row = append(row, widget(g))
		}
		all = append(all, row)
	}
	return awscloudwatch.NewDashboard(scope, &id, &awscloudwatch.DashboardProps{
		DashboardName:   &name,
		DefaultInterval: awscdk.Duration_Hours(jsii.Number((3 * time.Hour).Hours())),
		Widgets:         pointers(all),
	})
}

func widget(g Graph) awscloudwatch.IWidget {
	switch {
	case len(g.Alarms) > 0:
		return awscloudwatch.NewAlarmStatusWidget(&awscloudwatch.AlarmStatusWidgetProps{
			Title: &g.Title, Alarms: references(g.Alarms), Width: jsii.Number(g.Columns), Height: jsii.Number(height),
		})
	case len(g.Query) > 0:
		return awscloudwatch.NewLogQueryWidget(&awscloudwatch.LogQueryWidgetProps{
			Title: &g.Title, QueryLines: jsii.Strings(g.Query...), LogGroupNames: jsii.Strings(g.Logs...),
			View: awscloudwatch.LogQueryVisualizationType_TABLE, Width: jsii.Number(g.Columns), Height: jsii.Number(height),
		})
	}
	return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{
		Title: &g.Title, Left: &g.Metrics, Stacked: &g.Stacked, LiveData: jsii.Bool(true),
		LeftYAxis: &awscloudwatch.YAxisProps{Min: jsii.Number(0), ShowUnits: jsii.Bool(false)},
		Width:     jsii.Number(g.Columns), Height: jsii.Number(height),
	})
}

// Search finds the metrics of a name in a namespace, whatever values their other
// dimensions have, and draws a line for each.
func Search(namespace, dimension, value, other, name, statistic string, period time.Duration) awscloudwatch.IMetric {
	seconds := jsii.Number(period.Seconds())
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression:   jsii.String("SEARCH('{" + namespace + "," + dimension + "," + other + "} MetricName=\"" + name + "\" " + dimension + "=\"" + value + "\"', '" + statistic + "')"),
		UsingMetrics: &map[string]awscloudwatch.IMetric{},
		Label:        jsii.String(""),
		Period:       awscdk.Duration_Seconds(seconds),
	})
}

func references(alarms []awscloudwatch.IAlarm) *[]interfacesawscloudwatch.IAlarmRef {
	var out []interfacesawscloudwatch.IAlarmRef
	for _, a := range alarms {
		out = append(out, a)
	}
	return &out
}

func pointers(rows [][]awscloudwatch.IWidget) *[]*[]awscloudwatch.IWidget {
	var out []*[]awscloudwatch.IWidget
	for i := range rows {
		out = append(out, &rows[i])
	}
	return &out
}
