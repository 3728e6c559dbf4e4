//! Draws a plot as an SVG document without scripts, styles or embedded fonts.

use maud::{Markup, html};

use super::plot::Panel;
use super::row::Measure;
use super::table::value;

/// Width of one panel, in pixels. All lengths here are pixels.
const WIDTH: f64 = 460.0;
/// Height of one panel.
const HEIGHT: f64 = 260.0;
/// Number of panels in a row.
const ACROSS: usize = 2;
/// Height of the title.
const TOP: f64 = 40.0;
/// Left end of the area in a panel in which lines and bars are drawn. The next constants are its other ends.
const LEFT: f64 = 80.0;
const RIGHT: f64 = WIDTH - 25.0;
const UPPER: f64 = 65.0;
const LOWER: f64 = HEIGHT - 45.0;
/// Number of letters of a title that fit into a panel.
const LETTERS: usize = 62;
/// Number of horizontal grid lines in a panel, without the axis.
const LINES: u32 = 4;

/// Draws the panels of a group.
pub fn svg(title: &str, panels: &[Panel]) -> String {
    let rows = u32::try_from(panels.len().div_ceil(ACROSS)).unwrap_or(u32::MAX);
    let (width, height) = (WIDTH * 2.0, TOP + HEIGHT * f64::from(rows));
    let mut next = (0.0, TOP);
    let mut placed = Vec::new();
    for panel in panels {
        placed.push((next, panel));
        next = if next.0 > 0.0 {
            (0.0, next.1 + HEIGHT)
        } else {
            (WIDTH, next.1)
        };
    }
    let picture = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(px(width)) height=(px(height))
            viewBox={ "0 0 " (px(width)) " " (px(height)) } font-family="sans-serif" font-size="12" fill="#1f2937" {
            title { (title) }
            rect width=(px(width)) height=(px(height)) fill="#ffffff" {}
            text x="20" y="26" font-size="18" { (title) }
            @for ((x, y), panel) in placed {
                g transform={ "translate(" (px(x)) " " (px(y)) ")" } { (draw(panel)) }
            }
        }
    };
    picture.into_string()
}

fn draw(panel: &Panel) -> Markup {
    match panel {
        Panel::Lines {
            title,
            measure,
            axis,
            lines,
        } => {
            let points = lines.iter().flat_map(|(_, points)| points);
            let largest = |all: f64, one: f64| all.max(one);
            let mut places: Vec<f64> = points.clone().map(|(x, _)| *x).collect();
            places.sort_by(f64::total_cmp);
            places.dedup();
            // All positions on the horizontal axis are positive.
            let most_x = places.last().copied().unwrap_or(1.0);
            let most_y = end(*measure, points.map(|(_, y)| *y).fold(0.0, largest));
            let place = |(x, y): &(f64, f64)| (LEFT + x / most_x * (RIGHT - LEFT), level(*y, most_y));
            html! {
                (caption(title, *measure))
                (grid(most_y, |figure| value(*measure, figure)))
                text x=(px(RIGHT)) y=(px(LOWER + 32.0)) text-anchor="end" { (axis) }
                @for x in places {
                    text x=(px(place(&(x, 0.0)).0)) y=(px(LOWER + 16.0)) text-anchor="middle" { (x) }
                }
                @for (number, (name, points)) in lines.iter().enumerate() {
                    polyline points=(path(points.iter().map(place))) fill="none" stroke=(colour(name)) stroke-width="2" {}
                    @for (x, y) in points.iter().map(place) {
                        circle cx=(px(x)) cy=(px(y)) r="3" fill=(colour(name)) {}
                    }
                    (legend(number, name))
                }
            }
        }
        Panel::Bars { title, measure, bars } => {
            let most = end(
                *measure,
                bars.iter().map(|(_, figure)| *figure).fold(0.0, f64::max),
            );
            html! {
                (caption(title, *measure))
                (grid(most, |figure| value(*measure, figure)))
                @for (number, (name, figure)) in bars.iter().enumerate() {
                    @let x = LEFT + 20.0 + 115.0 * offset(number);
                    @let y = level(*figure, most);
                    rect x=(px(x)) y=(px(y)) width="80" height=(px(LOWER - y)) fill=(colour(name)) {}
                    text x=(px(x + 40.0)) y=(px(y - 4.0)) text-anchor="middle" { (value(*measure, *figure)) }
                    text x=(px(x + 40.0)) y=(px(LOWER + 16.0)) text-anchor="middle" { (name) }
                }
            }
        }
    }
}

/// Returns the caption of a panel: the measure and the title. A long title is cut, and a tooltip shows all of it.
fn caption(work: &str, measure: Measure) -> Markup {
    let mut start: String = work.chars().take(LETTERS).collect();
    if start.len() < work.len() {
        start.push('…');
    }
    html! {
        text x="20" y="14" font-weight="bold" { (measure.label()) }
        text x="20" y="30" { (start) title { (work) } }
    }
}

/// Draws the horizontal grid lines with their figures.
fn grid(most: f64, label: impl Fn(f64) -> String) -> Markup {
    html! {
        @for (_, figure) in steps(most) {
            @let y = px(level(figure, most));
            line x1=(px(LEFT)) x2=(px(RIGHT)) y1=(y) y2=(y) stroke="#e5e7eb" {}
            text x=(px(LEFT - 6.0)) y=(px(level(figure, most) + 4.0)) text-anchor="end" { (label(figure)) }
        }
    }
}

fn legend(number: usize, name: &str) -> Markup {
    let x = LEFT + 90.0 * offset(number);
    html! {
        rect x=(px(x)) y="40" width="10" height="10" fill=(colour(name)) {}
        text x=(px(x + 14.0)) y="49" { (name) }
    }
}

/// Returns the positions of the grid lines as shares of the axis from 0 to 1, with the figures there.
fn steps(most: f64) -> impl Iterator<Item = (f64, f64)> {
    (0..=LINES).map(move |step| {
        let share = f64::from(step) / f64::from(LINES);
        (share, share * most)
    })
}

/// Returns the vertical position of a figure in a panel, from the top.
fn level(figure: f64, most: f64) -> f64 {
    LOWER - figure / most * (LOWER - UPPER)
}

/// Returns the figure at the end of the vertical axis. For counts, it is large enough that the grid lines are at whole numbers.
fn end(measure: Measure, figure: f64) -> f64 {
    let least = if measure.unit().is_empty() {
        f64::from(LINES)
    } else {
        0.0
    };
    nice(figure.max(least))
}

/// Returns the smallest number not below the figure that is 1, 2, 4 or 8 times a power of ten. A quarter of such a number is
/// round, too.
fn nice(figure: f64) -> f64 {
    if !figure.is_finite() || figure <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(figure.log10().floor());
    let steps = [1.0, 2.0, 4.0, 8.0, 10.0];
    let found = steps.into_iter().map(|step| step * power);
    found.into_iter().find(|step| *step >= figure).unwrap_or(figure)
}

fn colour(name: &str) -> &'static str {
    match name {
        "here" => "#2563eb",
        "beside" => "#ea580c",
        _ => "#9ca3af",
    }
}

fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    let points: Vec<String> = points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    points.join(" ")
}

fn px(length: f64) -> String {
    format!("{length:.1}")
}

fn offset(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::xml;

    #[test]
    fn a_plot_is_well_formed_and_escapes_its_texts() {
        let panels = [
            Panel::Lines {
                title: "a < b & c".to_owned(),
                measure: Measure::Time,
                axis: "extensions".to_owned(),
                lines: vec![
                    ("here", vec![(50.0, 1.0), (200.0, 3.5)]),
                    ("beside", vec![(50.0, 9.0)]),
                ],
            },
            Panel::Bars {
                title: "\"bars\"".to_owned(),
                measure: Measure::Peak,
                bars: vec![("here", 0.0), ("baseline", 12.0)],
            },
        ];
        let text = svg("group", &panels);
        assert_eq!(xml::errors(&text), Vec::<String>::new());
        for part in [
            "a &lt; b &amp; c",
            "<polyline",
            "9.0",
            ">extensions<",
            ">here<",
            "12.0 MiB",
        ] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
    }

    #[test]
    fn a_plot_without_figures_is_well_formed() {
        assert_eq!(xml::errors(&svg("nothing", &[])), Vec::<String>::new());
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "the results are exact")]
    fn axes_end_at_round_numbers() {
        for (figure, end) in [(3.5, 4.0), (4.0, 4.0), (83.0, 100.0), (0.0, 1.0), (200.0, 200.0)] {
            assert_eq!(nice(figure), end);
        }
    }
}
